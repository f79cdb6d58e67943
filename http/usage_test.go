package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/http/quota"
)

// usage returns the response of a call for it.
func usage(c *nodetest.Client) (flags, evaluations, users int) {
	c.Service.T.Helper()
	a := c.Call("GET", "/api/v1/tenants/"+c.Tenant+"/usage", nil).Want(200)
	shown := a.Object()
	delete(shown, "allUnpaid") // which is for the creator of a tenant alone
	nodetest.Members(c.Service.T, "usage", shown, "flags", "evaluations", "users", "bytes", "bytesWrittenToday", "limits")
	var body struct{ Flags, Evaluations, Users int }
	a.Decode(&body)
	return body.Flags, body.Evaluations, body.Users
}

func uses(c *nodetest.Client, flags, evaluations, users int) {
	c.Service.T.Helper()
	f, e, u := usage(c)
	nodetest.Same(c.Service.T, "flags, evaluations and users", []int{f, e, u}, []int{flags, evaluations, users})
}

func TestUsage(t *testing.T) {
	nodetest.Cases{
		"each flag that is evaluated counts": func(_ *testing.T, me *nodetest.Client) {
			uses(me, 0, 0, 1)
			me.CreateFlag("on", nil)
			me.CreateFlag("split",
				map[string]any{"type": "string", "flag_variations": []map[string]any{{"name": "a", "value": "A", "weight": 1}}})
			me.Call("POST", nodetest.FlagPath("split", "/enable"), nil).Want(200)
			uses(me, 2, 0, 1)
			me.Evaluate("on", `{}`).Want(200)
			uses(me, 2, 1, 1)
			me.Call("POST", "/api/v1/flags/evaluate", `{"targetingKey":"u"}`).Want(200)
			uses(me, 2, 3, 1)
			me.Call("POST", "/api/v1/flags/evaluate", `{"targetingKey":"u","flagKeys":["split","none"]}`).Want(200)
			uses(me, 2, 4, 1)
			me.Evaluate("none", `{}`).Want(404)
			me.Evaluate("split", `{}`).Want(422)
			uses(me, 2, 4, 1)
			callOFREP(me, "on", `{}`).Want(200)
			callOFREP(me, "none", `{}`).Want(404)
			callOFREP(me, "split", `{}`).Want(400)
			uses(me, 2, 5, 1)
			tag := callOFREP(me, "", `{"targetingKey":"u"}`).Want(200).Header.Get("ETag")
			uses(me, 2, 7, 1)
			callOFREP(me, "", `{"targetingKey":"u"}`, "If-None-Match", tag).Want(304)
			uses(me, 2, 9, 1)
			callOFREP(me, "", `{}`).Want(200)
			uses(me, 2, 10, 1)
			me.Call("DELETE", nodetest.FlagPath("on"), nil).Want(204)
			uses(me, 1, 10, 1)
			uses(me.NewTenant("another"), 0, 0, 1)
		},
		"members count, those who are invited do not": func(_ *testing.T, me *nodetest.Client) {
			uses(me.Join("viewer"), 0, 0, 2)
			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/users", map[string]string{"email": nodetest.Address(), "role": "viewer"}).
				Want(201)
			uses(me, 0, 0, 2)
		},
	}.Run(t)
}

// The size of a tenant's flags is shown, and may grow up to the limit of the plan in force.
func TestBytesOfFlags(t *testing.T) {
	t.Parallel()
	const bound = 1 << 18 // of a tenant; the other limits are in proportion
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		Limits: quota.Limits{
			Plans:     map[events.Plan]int{events.FreePlan: 1_000_000, events.StandardPlan: 2_000_000},
			Anonymous: 1_000_000,
			Auth:      1_000_000,
		},
		FlagBytes: map[events.Plan]int{
			events.FreePlan:    bound,
			events.SandboxPlan: bound,
			events.PremiumPlan: 50_000,
		},
		Now: withinADay().now,
	}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	bytes := func(most, requests int) int {
		t.Helper()
		var body struct {
			Bytes  int
			Limits map[string]int
		}
		me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/usage", nil).Want(200).Decode(&body)
		nodetest.Same(t, "limits", body.Limits,
			map[string]int{"flags": 20_000, "bytes": most, "bytesWrittenPerDay": 8 * most, "requestsPerMinute": requests})
		return body.Bytes
	}
	text := func(n int) string { return strings.Repeat("x", n) }
	createIn := func(c *nodetest.Client, key string, n int) *nodetest.Answer {
		return c.Call(
			"POST",
			"/api/v1/flags",
			map[string]any{"key": key, "type": "string", "flag_variations": []map[string]any{
				{
					"name":  "a",
					"value": text(n / 8),
				},
				{"name": "b", "value": text(n / 8)},
				{"name": "c", "value": text(n / 8)},
				{"name": "d", "value": text(n / 8)},
				{
					"name":  "e",
					"value": text(n / 8),
				},
				{"name": "f", "value": text(n / 8)},
				{"name": "g", "value": text(n / 8)},
				{"name": "h", "value": text(n / 8)},
			}},
		)
	}
	create := func(key string, n int) *nodetest.Answer { return createIn(me, key, n) }
	nodetest.Same(t, "bytes at first", bytes(bound, 1_000_000), 0)
	create("a", 125_000).Want(201)
	if n := bytes(bound, 1_000_000); n < 125_000 || n > 127_000 {
		t.Errorf("a flag of 125,000 takes %d", n)
	}
	create("b", 125_000).Want(201)
	if detail := fmt.Sprint(create("c", 25_000).Refused(409).Object()["detail"]); !strings.Contains(detail, fmt.Sprint(bound)) {
		t.Errorf("refused with %q", detail)
	}
	t.Run("all unpaid tenants of a creator have a bound together", func(t *testing.T) {
		creator := s.In(t).SignUp("creator@example.com")
		var last *nodetest.Client
		for i := range 4 {
			last = creator.NewTenant(fmt.Sprint(i))
			createIn(last, "a", 125_000).Want(201)
			createIn(last, "b", 125_000).Want(201)
		}
		detail := fmt.Sprint(createIn(creator, "a", 125_000).Refused(409).Object()["detail"])
		if !strings.Contains(detail, "all free and sandbox tenants") || !strings.Contains(detail, fmt.Sprint(4*bound)) {
			t.Errorf("refused with %q", detail)
		}
		last.Subscribe(events.Subscription{ID: "sub_3", Plan: events.StandardPlan, Status: events.Active})
		createIn(creator, "a", 125_000).Want(201)
	})
	t.Run("where one whose plan has ended counts as one that is full", func(t *testing.T) {
		creator := s.In(t).SignUp("lapsed@example.com")
		creator.Subscribe(events.Subscription{ID: "sub_4", Plan: events.StandardPlan, Status: events.Active})
		for i := range 9 {
			createIn(creator, fmt.Sprint("f", i), 125_000).Want(201)
		}
		creator.Subscribe(events.Subscription{ID: "sub_4", Plan: events.StandardPlan, Status: events.Canceled})
		createIn(creator, "a", 1000).Refused(409)
		createIn(creator.NewTenant("another"), "a", 1000).Want(201)
	})
	t.Run("and one for what they write in a day, those that were deleted included", func(t *testing.T) {
		creator := s.In(t).SignUp("writer@example.com")
		gone := creator.NewTenant("gone")
		createIn(gone, "a", 1000).Want(201)
		type unpaid struct{ Bytes, BytesWrittenToday int }
		shown := func(c *nodetest.Client) *unpaid {
			var body struct {
				Bytes, BytesWrittenToday int
				AllUnpaid                *struct {
					unpaid
					Limits map[string]int
				}
			}
			c.Call("GET", "/api/v1/tenants/"+c.Tenant+"/usage", nil).Want(200).Decode(&body)
			if body.AllUnpaid == nil {
				return nil
			}
			nodetest.Same(t, "the bounds of all unpaid tenants", body.AllUnpaid.Limits,
				map[string]int{"bytes": 4 * bound, "bytesWrittenPerDay": 4 * 8 * bound})
			return &body.AllUnpaid.unpaid
		}
		first := shown(creator)
		if first == nil || first.Bytes < 1000 || first.BytesWrittenToday < 1000 {
			t.Fatalf("the creator is shown %+v", first)
		}
		if other := shown(gone.Join("admin")); other != nil {
			t.Errorf("somebody else is shown %+v", other)
		}
		s.Node.API.Quotas.Wrote(gone.Tenant, 4*8*bound)
		gone.Call("DELETE", "/api/v1/tenants/"+gone.Tenant, nil).Want(204)
		if now := shown(creator); now.Bytes != 0 || now.BytesWrittenToday < first.BytesWrittenToday+4*8*bound {
			t.Errorf("the creator is shown %+v, and was shown %+v before", now, first)
		}
		detail := fmt.Sprint(createIn(creator, "a", 1000).Refused(429).Object()["detail"])
		if !strings.Contains(detail, "all free and sandbox tenants") {
			t.Errorf("refused with %q", detail)
		}
		creator.Subscribe(events.Subscription{ID: "sub_5", Plan: events.StandardPlan, Status: events.Active})
		createIn(creator, "a", 1000).Want(201)
		if paid := shown(creator); paid != nil {
			t.Errorf("who pays is shown %+v", paid)
		}
	})
	me.Subscribe(events.Subscription{ID: "sub_1", Plan: events.StandardPlan, Status: events.Active})
	create("c", 25_000).Want(201)
	taken := bytes(64<<20, 2_000_000)
	me.Subscribe(events.Subscription{ID: "sub_1", Plan: events.StandardPlan, Status: events.Canceled})
	t.Run("what changes take in a day is bounded, also where their answers are kept", func(t *testing.T) {
		other := s.SignUp("other@example.com")
		other.Subscribe(events.Subscription{ID: "sub_2", Plan: events.PremiumPlan, Status: events.Active})
		other.CreateFlag("k", map[string]any{"type": "string", "defaultValue": text(40_000)})
		keyed := func(i int) *nodetest.Answer {
			return other.Call("PATCH", nodetest.FlagPath("k"), fmt.Sprintf(`{"description":"%d"}`, i), "Idempotency-Key",
				fmt.Sprint("key ", i))
		}
		newClient := func() *nodetest.Answer {
			return other.Call("POST", "/api/v1/oauth/clients", `{"name":"N","scopes":["flags:read"]}`, "Idempotency-Key",
				"client")
		}
		newClient().Want(201)
		first, n := keyed(0).Want(200), 1
		for n < 12 && keyed(n).Status == 200 {
			n++
		}
		if n < 8 || n > 10 { // 40 KB for the flag and as many for each answer, of 400 KB
			t.Errorf("%d changes were made", n)
		}
		refused := keyed(n)
		refused.Refused(429)
		nodetest.Same(t, "Retry-After", refused.Header.Get("Retry-After"), refused.Header["Ratelimit-Reset"][0])
		nodetest.Same(t, "the limit that refuses", refused.Header["Ratelimit-Limit"], []string{"400000"})
		other.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"description": "more"}).Refused(429)
		other.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "Idempotency-Key", "x").Refused(429)
		nodetest.Same(t, "the first one, made again", keyed(0).Want(200).Object(), first.Object())
		newClient().Want(201)
		forgetAnswers(s)
		newClient().Refused(429) // it would rotate the secret, which is lost with the response
		for range 2 {            // built from the facts, and not stored again
			retried := carriedOutAgain(keyed(0), first)
			nodetest.Same(t, "the limit of a retry, which is that of requests", retried.Header["Ratelimit-Limit"],
				[]string{"1000000"})
		}
		for range 2 {
			keyed(n).Refused(429)
		}
		other.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
		if a := other.Call("POST", "/api/v1/billing/portal", `{}`); a.Status == 429 {
			t.Error("nothing can be paid for")
		}
		if n := other.Call("GET", "/api/v1/tenants/"+other.Tenant+"/usage", nil).Want(200).Object()["bytesWrittenToday"]; n.(float64) < 400_000 {
			t.Errorf("it has written %v", n)
		}
		other.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
	})
	t.Run("a plan that has ended takes nothing away", func(t *testing.T) {
		nodetest.Same(t, "bytes", bytes(bound, 1_000_000), taken)
		me.Evaluate("c", `{}`).Want(200)
		me.Call("PATCH", nodetest.FlagPath("c"), map[string]any{"description": "more"}).Refused(409)
		me.SetRules("c", `{"rules":[{"conditions":[],"serve":{"value":"x"}}]}`).Refused(409)
		me.Call("POST", nodetest.FlagPath("c", "/enable"), nil).Want(200)
		me.Call("DELETE", nodetest.FlagPath("a"), nil).Want(204)
		me.SetRules("c", `{"rules":[{"conditions":[],"serve":{"value":"x"}}]}`).Want(200)
	})
	t.Run("and what counts is the same after a start", func(t *testing.T) {
		taken := bytes(bound, 1_000_000)
		second := *me
		second.Service = s.SecondNode()
		s.Node.Stop()
		me = &second
		nodetest.Same(t, "bytes", bytes(bound, 1_000_000), taken)
	})
}

func TestUsageOfSeveralNodes(t *testing.T) {
	t.Parallel()
	first := nodetest.New(t)
	me := first.SignUp("me@example.com")
	me.CreateFlag("f", nil)
	second := first.SecondNode()
	there := *me
	there.Service = second
	evaluate := func(n int) {
		for range n {
			me.Evaluate("f", `{}`).Want(200)
			there.Evaluate("f", `{}`).Want(200)
		}
	}
	evaluate(3)
	first.Eventually("each node shows both nodes' evaluations", func() bool {
		_, here, _ := usage(me)
		_, other, _ := usage(&there)
		return here == 6 && other == 6
	})
	evaluate(2)
	second.Node.Stop()
	uses(me, 1, 10, 1)
	third := *me
	third.Service = first.SecondNode()
	first.Node.Stop()
	uses(&third, 1, 10, 1)
	third.Evaluate("f", `{}`).Want(200)
	uses(&third, 1, 11, 1)
}

func TestUsageDuringAnOutage(t *testing.T) {
	t.Parallel()
	dir, p := nodetest.OwnPostgres(t)
	s := nodetest.On(t, p.URL())
	me := s.SignUp("me@example.com")
	me.CreateFlag("f", nil)
	me.Evaluate("f", `{}`).Want(200)
	end := nodetest.Outage(t, dir)
	s.Eventually("the database is gone",
		func() bool { return me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/usage", nil).Status == 503 })
	for range 10 {
		me.Evaluate("f", `{}`).Want(200)
	}
	end()
	s.Eventually("the database is back",
		func() bool { return me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/usage", nil).Status == 200 })
	uses(me, 1, 11, 1)
	other := *me
	other.Service = nodetest.Start(t, p.URL(), s.Config, nodetest.Log(t))
	s.Eventually("another node hears of it", func() bool {
		_, n, _ := usage(&other)
		return n == 11
	})
}
