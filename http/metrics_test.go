package http_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
)

func metricsPath(key, query string) string { return nodetest.FlagPath(key, "/metrics", query) }

func tenantMetricsPath(c *nodetest.Client, query string) string {
	return "/api/v1/tenants/" + c.Tenant + "/metrics" + query
}

func TestPeriodsOfMetrics(t *testing.T) {
	nodetest.Cases{
		"points are whole hours or days, without gaps, and the running one is the last": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, path := range []string{metricsPath("k", ""), tenantMetricsPath(me, "")} {
				for query, want := range map[string]struct {
					step   time.Duration
					points int
				}{
					"": {time.Hour, 24}, "?interval=hour": {time.Hour, 24}, "?interval=day": {24 * time.Hour, 30}, "?to=2999-01-01T00:00:00Z": {time.Hour, 24},
					"?interval=day&from=" + time.Now().Add(-999*24*time.Hour).UTC().Format(time.RFC3339): {24 * time.Hour, 1000},
				} {
					before := time.Now().UTC().Truncate(want.step)
					body := me.Call("GET", path+query, nil).Want(200).Object()
					after := time.Now().UTC().Truncate(want.step)
					points := asMaps(body["points"])
					nodetest.Same(t, "points", len(points), want.points)
					last, err := time.Parse(time.RFC3339, points[len(points)-1]["time"].(string))
					if err != nil || last.Before(before) || last.After(after) {
						t.Errorf("%s: the last point is of %v", query, points[len(points)-1])
					}
					text := func(at time.Time) string { return at.Format("2006-01-02T15:04:05.000Z") }
					for i, point := range points {
						nodetest.Same(t, "the time of a point", point["time"], text(last.Add(time.Duration(i-want.points+1)*want.step)))
						nodetest.Same(t, "a point without uses", []any{point["evaluations"], point["prefetches"], point["reasons"]},
							[]any{0, 0, map[string]any{}})
					}
					nodetest.Same(t, "the period", []any{body["from"], body["to"]}, []any{points[0]["time"], text(last.Add(want.step))})
				}
			}
		},
		"what was asked for is aligned in UTC": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			body := me.Call("GET", metricsPath("k", "?from=2024-03-14T10:59:59.999%2B02:00&to=2024-03-14T11:00:00.001Z&environment=development"), nil).
				Want(200).
				Object()
			nodetest.Same(t, "the answer", body, map[string]any{
				"flagKey":     "k",
				"environment": "development",
				"interval":    "hour",
				"from":        "2024-03-14T08:00:00.000Z",
				"to":          "2024-03-14T12:00:00.000Z",
				"evaluations": 0,
				"reported":    0,
				"prefetches":  0,
				"required":    0,
				"clients":     []any{},
				"points": []any{
					emptyPoint("2024-03-14T08:00:00.000Z"),
					emptyPoint("2024-03-14T09:00:00.000Z"),
					emptyPoint("2024-03-14T10:00:00.000Z"),
					emptyPoint("2024-03-14T11:00:00.000Z"),
				},
			})
			body = me.Call("GET", tenantMetricsPath(me, "?from=2024-03-14T10:00:00Z&to=2024-03-14T11:00:00Z&interval=day"), nil).
				Want(200).
				Object()
			point := emptyPoint("2024-03-14T00:00:00.000Z")
			delete(point, "outcomes")
			nodetest.Same(t, "the tenant's", body, map[string]any{
				"environment": nil,
				"interval":    "day",
				"from":        "2024-03-14T00:00:00.000Z",
				"to":          "2024-03-15T00:00:00.000Z",
				"evaluations": 0,
				"reported":    0,
				"prefetches":  0,
				"required":    0,
				"clients":     []any{},
				"flags":       []any{},
				"points":      []any{point},
			})
		},
		"what makes no sense is refused": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for _, path := range []string{metricsPath("k", ""), tenantMetricsPath(me, "")} {
				for query, fields := range map[string]string{
					"from=x": "from", "from=2024-03-14": "from", "to=2024-03-14T10:00:00,5Z&from=x": "from to", "interval=week": "interval", "limit=1": "limit", "at=2024-03-14T10:00:00Z": "at",
					"from=2024-03-14T10:00:00Z&to=2024-03-14T10:00:00Z": "from", "from=2024-03-14T10:30:00Z&to=2024-03-14T10:20:00Z": "from", "from=2999-01-01T00:00:00Z": "from", "from=0001-01-01T00:00:00Z": "from",
					"from=2024-01-01T00:00:00Z&to=2024-02-11T16:00:00.001Z": "from", "from=2018-01-01T00:00:00Z&to=2024-01-01T00:00:00Z&interval=day": "from",
				} {
					me.Call("GET", path+"?"+query, nil).Refused(422, strings.Fields(fields)...)
				}
				me.Call("GET", path+"?from=2024-01-01T00:00:00Z&to=2024-02-11T16:00:00Z", nil).Want(200)
				me.Call("GET", path+"?environment=none", nil).Refused(404)
				me.Lenient().Call("GET", path, nil, "X-Environment", "none").Want(200) // a header that it does not know
			}
			me.Call("GET", metricsPath("none", ""), nil).Refused(404)
		},
		"others see nothing": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Join("viewer").Call("GET", metricsPath("k", ""), nil).Want(200)
			me.Machine("flags:read").Call("GET", metricsPath("k", ""), nil).Want(200)
			me.Machine("flags:evaluate").Call("GET", metricsPath("k", ""), nil).Refused(403)
			me.Machine("flags:read").Call("GET", tenantMetricsPath(me, ""), nil).Refused(403)
			stranger := me.NewTenant("stranger")
			stranger.Call("GET", metricsPath("k", ""), nil).Refused(404)
			me.Service.SignUp(nodetest.Address()).Call("GET", tenantMetricsPath(me, ""), nil, "X-Tenant-ID", "").Refused(403)
		},
	}.Run(t)
}

// emptyPoint is a flag's point without usage.
func emptyPoint(at string) map[string]any {
	return map[string]any{
		"time": at, "evaluations": 0, "reported": 0, "prefetches": 0, "required": 0, "reasons": map[string]any{}, "outcomes": []any{},
	}
}

// usesShown sums the usage that all points of the metrics show.
type usesShown struct {
	Evaluations, Prefetches int
	Outcomes                map[string]int // by variationName, or value if there is none
	Reasons                 map[string]int
	Clients                 map[string]int // by name; people without one
	Flags                   map[string]int
}

func readMetrics(c *nodetest.Client, path string) usesShown {
	c.Service.T.Helper()
	var body struct {
		Evaluations, Prefetches int
		Points                  []struct {
			Evaluations, Prefetches int
			Reasons                 map[string]int
			Outcomes                []struct {
				VariationName *string
				Value         any
				Count         int
			}
		}
		Clients []struct {
			ClientID, Name *string
			Evaluations    int
			LastSeenAt     time.Time
		}
		Flags []struct {
			FlagKey     string
			Evaluations int
		}
	}
	c.Call("GET", path, nil).Want(200).Decode(&body)
	shown := usesShown{
		body.Evaluations,
		body.Prefetches,
		map[string]int{},
		map[string]int{},
		map[string]int{},
		map[string]int{},
	}
	evaluations, prefetches := 0, 0
	for _, p := range body.Points {
		evaluations, prefetches = evaluations+p.Evaluations, prefetches+p.Prefetches
		for reason, n := range p.Reasons {
			shown.Reasons[reason] += n
		}
		for _, o := range p.Outcomes {
			if o.VariationName != nil {
				shown.Outcomes[*o.VariationName] += o.Count
			} else {
				shown.Outcomes[fmt.Sprint("value ", o.Value)] += o.Count
			}
		}
	}
	nodetest.Same(c.Service.T, "the sum of all points", []int{evaluations, prefetches},
		[]int{body.Evaluations, body.Prefetches})
	for _, client := range body.Clients {
		name := ""
		if client.ClientID != nil {
			name = *client.Name
		}
		shown.Clients[name] = client.Evaluations
		if age := time.Since(client.LastSeenAt); age < -time.Second || age > 10*time.Minute {
			c.Service.T.Errorf("%s was last seen at %v", name, client.LastSeenAt)
		}
	}
	for _, f := range body.Flags {
		shown.Flags[f.FlagKey] = f.Evaluations
	}
	return shown
}

func TestMetricsShowWhatWasUsed(t *testing.T) {
	nodetest.Cases{
		"by everybody, and nothing is lost but with its flag or environment": func(t *testing.T, me *nodetest.Client) {
			a, _ := me.TwoVariations("k")
			me.CreateFlag("unused", nil)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			me.SetRules("k", `{"rules":[{"conditions":[{"attribute":"plan","op":"in","values":["pro"]}],"serve":{"variationId":"`+a+`"}}]}`).
				Want(200)
			const pro = `{"targetingKey":"u","attributes":{"plan":"pro"}}`
			for range 3 {
				me.Evaluate("k", pro).Want(200)
			}
			me.Evaluate("k", `{}`).Want(200)
			me.Evaluate("k", `{}`).Want(200)
			me.Evaluate("k", `{}`, "X-Environment", "development").Want(200)
			machine := me.Machine("flags:evaluate", "flags:read")
			callOFREP(machine, "k", `{"targetingKey":"u","plan":"pro"}`).Want(200)
			machine.Call("POST", "/api/v1/flags/evaluate", `{"flagKeys":["k","k","none"]}`).Want(200)
			machine.Call("POST", "/api/v1/flags/evaluate", `{}`).Want(200)
			tag := callOFREP(machine, "", `{}`).Want(200).Header.Get("ETag")
			callOFREP(machine, "", `{}`, "If-None-Match", tag).Want(304)

			me.Call("POST", "/api/v1/flags/evaluate", `{"flagKeys":[]}`).Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?explain=true"), pro).Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?version=1"), pro).Want(200)
			me.Evaluate("none", `{}`).Refused(404)

			all := usesShown{
				8,
				3,
				map[string]int{"a": 4, "value ": 4},
				map[string]int{"RULE_MATCH": 4, "FALLTHROUGH": 3, "OFF": 1},
				map[string]int{"": 6, "Machine": 2},
				map[string]int{},
			}
			ofTenant := all
			ofTenant.Outcomes, ofTenant.Flags = map[string]int{}, map[string]int{"k": 8}
			wantCounts(me, metricsPath("k", ""), 8, 3)
			wantCounts(me, metricsPath("unused", ""), 0, 3)
			wantCounts(me, tenantMetricsPath(me, ""), 8, 3)
			nodetest.Same(t, "the flag", readMetrics(me, metricsPath("k", "")), all)
			nodetest.Same(t, "by day", readMetrics(machine, metricsPath("k", "?interval=day")), all)
			nodetest.Same(t, "the tenant", readMetrics(me, tenantMetricsPath(me, "")), ofTenant)
			nodetest.Same(t, "by day", readMetrics(me, tenantMetricsPath(me, "?interval=day")), ofTenant)
			development := usesShown{
				1,
				0,
				map[string]int{"value ": 1},
				map[string]int{"OFF": 1},
				map[string]int{"": 1},
				map[string]int{},
			}
			nodetest.Same(t, "in an environment", readMetrics(me, metricsPath("k", "?environment=development")), development)
			nodetest.Same(t, "of a flag that nobody asked for by name", readMetrics(me, metricsPath("unused", "")),
				usesShown{0, 3, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}})

			me.SetRules("k", `{"rules":[]}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("k", "/variations/", a), `{"name":"renamed","value":"other"}`).Want(200)
			me.Call("DELETE", nodetest.FlagPath("k", "/variations/", a), nil).Want(204)
			me.Call("DELETE", "/api/v1/oauth/clients/"+machine.UserID, nil).Want(204)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/development", nil).Want(204)
			nodetest.Same(
				t,
				"the last names, without an environment that is gone",
				readMetrics(me, metricsPath("k", "")),
				usesShown{
					7,
					3,
					map[string]int{"renamed": 4, "value ": 3},
					map[string]int{"RULE_MATCH": 4, "FALLTHROUGH": 3},
					map[string]int{"": 5, "Machine": 2},
					map[string]int{},
				},
			)
			ofTenant.Flags = map[string]int{"k": 7}
			nodetest.Same(t, "the tenant's, with it", readMetrics(me, tenantMetricsPath(me, "")), ofTenant)

			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			me.Call("GET", metricsPath("k", ""), nil).Refused(404)
			me.CreateFlag("k", nil)
			none := usesShown{0, 0, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}}
			nodetest.Same(t, "a flag that was made again", readMetrics(me, metricsPath("k", "")), none)
			ofTenant.Flags = map[string]int{}
			nodetest.Same(t, "the tenant's, with that of the former", readMetrics(me, tenantMetricsPath(me, "")), ofTenant)
			another := me.NewTenant("another")
			nodetest.Same(t, "another tenant", readMetrics(another, tenantMetricsPath(another, "")), none)
		},
		"outcomes beyond 20 are one": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", map[string]any{"type": "number", "defaultValue": -1})
			began := time.Now().UTC()
			var outcomes []any
			for n := range 20 {
				me.SetFallthrough("k", fmt.Sprintf(`{"serve":{"value":%d}}`, n)).Want(200)
				me.Evaluate("k", `{}`).Want(200)
				me.Evaluate("k", `{}`).Want(200)
				outcomes = append(outcomes, map[string]any{"variationId": nil, "variationName": nil, "value": n, "count": 2})
			}
			wantCounts(me, metricsPath("k", ""), 40, 0) // all are known before the others come
			for _, n := range []int{20, 21, 22} {
				me.SetFallthrough("k", fmt.Sprintf(`{"serve":{"value":%d}}`, n)).Want(200)
				me.Evaluate("k", `{}`).Want(200)
			}
			outcomes = append(outcomes,
				map[string]any{"variationId": nil, "variationName": nil, "value": nil, "count": 3, "rest": true})
			for interval, step := range map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour} {
				wantCounts(me, metricsPath("k", "?interval="+interval), 43, 0)
				if !time.Now().UTC().Truncate(step).Equal(began.Truncate(step)) {
					continue // another hour has started with 20 outcomes of its own
				}
				points := asMaps(me.Call("GET", metricsPath("k", "?interval="+interval), nil).Want(200).Object()["points"])
				shown := list(points[len(points)-1]["outcomes"])
				slices.SortStableFunc(shown[:20],
					func(a, b any) int { return cmp.Compare(fmt.Sprint(object(a)["value"]), fmt.Sprint(object(b)["value"])) })
				slices.SortStableFunc(outcomes[:20],
					func(a, b any) int { return cmp.Compare(fmt.Sprint(object(a)["value"]), fmt.Sprint(object(b)["value"])) })
				nodetest.Same(t, "the outcomes", shown, outcomes)
			}
		},
		"the 20 flags of a tenant that are evaluated most": func(t *testing.T, me *nodetest.Client) {
			var keys []string
			for n := range 22 {
				keys = append(keys, fmt.Sprintf("flag-%02d", n))
				me.CreateFlag(keys[n], nil)
			}
			var want []any
			evaluations := 0
			for n := range keys {
				text, err := json.Marshal(map[string]any{"flagKeys": keys[n:]})
				if err != nil {
					t.Fatal(err)
				}
				me.Call("POST", "/api/v1/flags/evaluate", string(text)).Want(200)
				evaluations += len(keys) - n
			}
			for n := 21; n > 1; n-- {
				want = append(want, map[string]any{"flagKey": keys[n], "evaluations": n + 1})
			}
			wantCounts(me, tenantMetricsPath(me, ""), evaluations, 0)
			nodetest.Same(t, "the flags", me.Call("GET", tenantMetricsPath(me, ""), nil).Want(200).Object()["flags"], want)
		},
	}.Run(t)
}

// No label value of the totals comes from a tenant.
func TestEvaluationsAreTotalledByReason(t *testing.T) {
	t.Parallel()
	me := nodetest.New(t).SignUp("me@example.com")
	me.CreateFlag("k", nil)
	me.Evaluate("k", `{}`).Want(200)
	callOFREP(me, "k", `{}`).Want(200)
	me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
	me.CreateFlag("off", nil)
	me.Call("POST", "/api/v1/flags/evaluate", `{"flagKeys":["k","off","k","none"]}`).Want(200)
	me.Call("POST", "/api/v1/flags/evaluate", `{}`).Want(200)
	callOFREP(me, "", `{}`).Want(200)
	me.Evaluate("none", `{}`).Refused(404)
	me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"archived"}`).Want(200)
	me.Evaluate("k", `{}`).Want(200)
	callOFREP(me, "k", `{}`).Want(404)
	var totals []string
	for line := range strings.Lines(me.Service.Anonymous().Attempt("GET", "/metrics", "").Body) {
		if strings.HasPrefix(line, "flagledger_evaluations_total") {
			totals = append(totals, strings.TrimSpace(line))
		}
	}
	nodetest.Same(t, "the totals", totals, []string{
		`flagledger_evaluations_total{reason="ARCHIVED"} 1`,
		`flagledger_evaluations_total{reason="FALLTHROUGH"} 1`,
		`flagledger_evaluations_total{reason="OFF"} 3`,
		`flagledger_evaluations_total{reason="PREREQUISITE_FAILED"} 0`,
		`flagledger_evaluations_total{reason="RULE_MATCH"} 0`,
	})
}
