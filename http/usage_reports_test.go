package http_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	logs "go.opentelemetry.io/proto/slim/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/http/rest"
)

// reportOf returns a report with counts of this hour.
func reportOf(id string, counts ...map[string]any) map[string]any {
	for _, c := range counts {
		if c["hour"] == nil {
			c["hour"] = time.Now().UTC()
		}
	}
	return map[string]any{"reportId": id, "counts": counts}
}

// reportedIn returns what the metrics of a flag show.
func reportedIn(me *nodetest.Client, key, environment string) map[string]any {
	me.Service.T.Helper()
	body := me.Call("GET", metricsPath(key, "?environment="+environment), nil).Want(200).Object()
	shown := map[string]any{"evaluations": body["evaluations"], "reported": body["reported"], "prefetches": body["prefetches"]}
	for _, point := range asMaps(body["points"]) {
		if point["evaluations"] == 0.0 {
			continue
		}
		shown["reasons"] = point["reasons"]
		for _, outcome := range asMaps(point["outcomes"]) {
			shown[fmt.Sprint("served ", outcome["variationName"], " ", outcome["value"])] = outcome["count"]
		}

	}
	return shown
}

func TestReportsOfUsage(t *testing.T) {
	nodetest.Cases{
		"count once, as evaluations of the caller": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			key, server := createKey(me, "server", nil)
			report := reportOf("r1",
				map[string]any{"flagKey": "k", "value": "of an older version", "count": 1},
				map[string]any{"flagKey": "k", "value": true, "reason": "RULE_MATCH", "count": 3},
				map[string]any{"flagKey": "k", "value": true, "reason": "TARGETING_MATCH", "count": 4},
				map[string]any{"flagKey": "k", "value": false, "count": 2},
				map[string]any{"flagKey": "k", "prefetch": true, "count": 6},
				map[string]any{"prefetch": true, "count": 5},
				map[string]any{"flagKey": "none", "value": true, "count": 9})
			server.Call("POST", rest.UsageRoute, report).Want(202).Shows(map[string]any{"accepted": 6, "unknownFlags": []any{"none"}})
			server.Call("POST", rest.UsageRoute, report).Want(202).Shows(map[string]any{"accepted": 0, "unknownFlags": []any{"none"}})
			nodetest.Same(t, "what was reported", reportedIn(me, "k", "production"), map[string]any{
				"evaluations": 10, "reported": 10, "prefetches": 6,
				"reasons": map[string]any{"RULE_MATCH": 7, "FALLTHROUGH": 3}, "served <nil> true": 7, "served <nil> false": 2,
				"served <nil> <nil>": 1,
			})
			whole := me.Call("GET", tenantMetricsPath(me, ""), nil).Want(200).Object()
			nodetest.Same(t, "the tenant's prefetches", whole["prefetches"], 5)
			client := asMaps(whole["clients"])[0]
			nodetest.Same(t, "the caller", []any{client["clientId"], client["evaluations"], client["reported"]}, []any{key["id"], 10, 10})
			used := me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Object()
			if used["lastEvaluatedAt"] == nil {
				t.Errorf("the flag shows no evaluation: %v", used)
			}
		},
		"name variations, hours and environments": func(t *testing.T, me *nodetest.Client) {
			a, _ := me.TwoVariations("k")
			machine := me.Machine("flags:evaluate")
			machine.Call("POST", rest.UsageRoute, reportOf("r",
				map[string]any{"flagKey": "k", "variationId": strings.ToUpper(a), "count": 2, "environment": "development"},
				map[string]any{
					"flagKey": "k", "variationId": a, "count": 1, "environment": "development",
					"hour": strings.ToLower(time.Now().UTC().Add(-23 * time.Hour).Format(time.RFC3339)),
				},
				map[string]any{"flagKey": "k", "variationId": "gone", "count": 1, "environment": "development"},
			)).Want(202).Shows(map[string]any{"accepted": 3})
			shown := reportedIn(me, "k", "development")
			nodetest.Same(t, "evaluations", shown["evaluations"], 4)
			nodetest.Same(t, "in production", reportedIn(me, "k", "production")["evaluations"], 0)
		},
		"take null for a value, and a clock that is ahead": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", map[string]any{"type": "json", "defaultValue": nil})
			_, server := createKey(me, "server", nil)
			server.Call("POST", rest.UsageRoute, reportOf("r",
				map[string]any{"flagKey": "k", "value": nil, "count": 2},
				map[string]any{"flagKey": "k", "value": nil, "count": 1, "hour": time.Now().UTC().Add(2 * time.Hour)},
			)).Want(202).Shows(map[string]any{"accepted": 2})
			nodetest.Same(t, "what was reported", reportedIn(me, "k", "production")["evaluations"], 3)
		},
		"are refused with all that is wrong, and count nothing": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			_, server := createKey(me, "server", nil)
			server.Call("POST", rest.UsageRoute, reportOf("",
				map[string]any{"flagKey": "k", "value": true, "count": 1},
			)).Refused(422, "reportId")
			server.Call("POST", rest.UsageRoute, reportOf("r",
				map[string]any{"flagKey": "k", "value": true, "count": 1},
				map[string]any{"flagKey": "k", "value": true, "count": 0},
				map[string]any{"flagKey": "k", "value": true, "count": 1, "hour": time.Now().UTC().Add(-26 * time.Hour)},
				map[string]any{"flagKey": "k", "value": true, "count": 1, "hour": time.Now().UTC().Add(25 * time.Hour)},
				map[string]any{"flagKey": "k", "value": true, "count": 1, "environment": "development"},
				map[string]any{"flagKey": "k", "count": 1},
				map[string]any{"value": true, "count": 1},
				map[string]any{"flagKey": "k", "prefetch": true, "value": true, "count": 1},
				map[string]any{"flagKey": "k", "value": true, "count": 1, "keyId": "a"},
				map[string]any{"flagKey": "k", "value": true, "count": 1, "hour": "now"},
				map[string]any{"flagKey": "k", "prefetch": true, "required": true, "count": 1},
				map[string]any{"flagKey": "k", "required": true, "value": true, "reason": "OFF", "count": 1},
				map[string]any{"flagKey": "k", "required": true, "count": 1},
			)).Refused(422, "counts[10].prefetch", "counts[11].required", "counts[12].variationId", "counts[9].hour", "counts[1].count", "counts[2].hour", "counts[3].hour", "counts[4].environment", "counts[5].variationId",
				"counts[6].flagKey", "counts[7].prefetch", "counts[8].keyId")
			nodetest.Same(t, "evaluations", reportedIn(me, "k", "production")["evaluations"], 0)
		},
		"have no members that are unknown": func(_ *testing.T, me *nodetest.Client) {
			_, server := createKey(me, "server", nil)
			server.Call("POST", rest.UsageRoute, `{"reportId":"r","counts":[{"bogus":1}],"bogus":1}`).
				Refused(422, "bogus", "counts[0].bogus")
		},
		"come from machines and server keys": func(_ *testing.T, me *nodetest.Client) {
			report := reportOf("r", map[string]any{"flagKey": "k", "value": true, "count": 1})
			_, page := createKey(me, "browser", nil)
			for _, c := range []*nodetest.Client{me, page, me.Machine("flags:read")} {
				c.Call("POST", rest.UsageRoute, report).Refused(403)
			}
		},
		"of an edge name the key that asked": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			_, edge := createKey(me, "server", map[string]any{"edge": true})
			asked, _ := createKey(me, "browser", map[string]any{"name": "Page"})
			edge.Call("POST", rest.UsageRoute, reportOf("r",
				map[string]any{"flagKey": "k", "value": true, "count": 3, "keyId": strings.ToUpper(asked["id"].(string))})).Want(202)
			whole := me.Call("GET", tenantMetricsPath(me, ""), nil).Want(200).Object()
			nodetest.Same(t, "the caller", asMaps(whole["clients"])[0]["name"], "Page")
		},
	}.Run(t)
}

// sendLogs exports OpenTelemetry's logs in protobuf.
func sendLogs(c *nodetest.Client, records ...*logs.LogRecord) *collector.ExportLogsServiceResponse {
	t := c.Service.T
	t.Helper()
	message, err := proto.Marshal(&collector.ExportLogsServiceRequest{
		ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: records}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := c.Lenient().Call("POST", rest.LogsRoute, message, "Content-Type", "application/x-protobuf").Want(200)
	response := &collector.ExportLogsServiceResponse{}
	if err := proto.Unmarshal(answer.Body, response); err != nil {
		t.Fatal(err)
	}
	return response
}

// evaluationLog returns the record of an evaluation with attributes: name, value, name, value.
func evaluationLog(attributes ...string) *logs.LogRecord {
	l := &logs.LogRecord{EventName: "feature_flag.evaluation", TimeUnixNano: uint64(time.Now().UnixNano())}
	for i := 0; i < len(attributes); i += 2 {
		l.Attributes = append(l.Attributes, &common.KeyValue{
			Key:   attributes[i],
			Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: attributes[i+1]}},
		})
	}
	return l
}

func TestReportsAsLogs(t *testing.T) {
	const flag, value, variant = "feature_flag.key", "feature_flag.result.value", "feature_flag.result.variant"
	const reason, set = "feature_flag.result.reason", "feature_flag.set.id"
	nodetest.Cases{
		"count as evaluations, by variant or value": func(t *testing.T, me *nodetest.Client) {
			_, b := me.TwoVariations("k")
			name := ""
			for _, v := range me.Variations("k") {
				if v["id"] == b {
					name = v["name"].(string)
				}
			}
			me.CreateFlag("off", nil)
			_, server := createKey(me, "server", nil)
			other := &logs.LogRecord{EventName: "something.else", TimeUnixNano: 1}
			older := evaluationLog("event.name", "feature_flag.evaluation", flag, "k", "feature_flag.variant", name)
			older.EventName = ""
			response := sendLogs(server,
				evaluationLog(flag, "k", variant, name, reason, "targeting_match"),
				evaluationLog(flag, "k", variant, b, set, me.Tenant+"/production"),
				evaluationLog(flag, "k", value, "x", set, "production"),
				evaluationLog(flag, "k", variant, "gone"),
				evaluationLog(flag, "off", variant, "off", reason, "disabled"),
				evaluationLog(flag, "k", reason, "error"),
				evaluationLog(flag, "k", "error.type", "flag_not_found"),
				older, other)
			if response.PartialSuccess != nil {
				t.Errorf("refused: %v", response.PartialSuccess)
			}
			shown := reportedIn(me, "k", "production")
			nodetest.Same(t, "what was reported", []any{shown["evaluations"], shown["reported"], shown["reasons"]},
				[]any{5, 5, map[string]any{"RULE_MATCH": 1, "FALLTHROUGH": 4}})
			found := 0
			for what, n := range shown {
				if strings.HasPrefix(what, "served "+name+" ") {
					found = int(n.(float64))
				}
			}
			nodetest.Same(t, "served by its variant", found, 3)
			nodetest.Same(t, "the flag that is off", reportedIn(me, "off", "production"), map[string]any{
				"evaluations": 1, "reported": 1, "prefetches": 0, "reasons": map[string]any{"OFF": 1}, "served <nil> false": 1,
			})
		},
		"tell what could not be counted": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			_, server := createKey(me, "server", nil)
			old := evaluationLog(flag, "k", value, "true")
			old.TimeUnixNano = uint64(time.Now().Add(-26 * time.Hour).UnixNano())
			response := sendLogs(server,
				evaluationLog(flag, "none"), old,
				evaluationLog(flag, "k", set, "another/production"), evaluationLog(flag, "k", set, "development"),
				evaluationLog(flag, "k", value, "true"))
			nodetest.Same(t, "refused", []any{response.PartialSuccess.RejectedLogRecords, response.PartialSuccess.ErrorMessage},
				[]any{4, `feature_flag.key: there is no flag "none"`})
			nodetest.Same(t, "evaluations", reportedIn(me, "k", "production")["evaluations"], 1)
		},
		"come in JSON too": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			machine := me.Machine("flags:evaluate")
			record := fmt.Sprintf(`{"timeUnixNano":"%d","eventName":"feature_flag.evaluation","traceId":"5b8efff798038103d269b633813fc60c","new":1,
				"attributes":[{"key":"feature_flag.key","value":{"stringValue":"k"}},{"key":"feature_flag.result.value","value":{"boolValue":true}}]}`,
				time.Now().UnixNano())
			body := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + record + `,` + record + `]}]}]}`
			machine.Call("POST", rest.LogsRoute, body, "X-Environment", "development").Want(200)
			nodetest.Same(t, "what was reported", reportedIn(me, "k", "development")["served <nil> true"], 2)
		},
		"are refused if they are none": func(_ *testing.T, me *nodetest.Client) {
			_, server := createKey(me, "server", nil)
			_, page := createKey(me, "browser", nil)
			server.Call("POST", rest.LogsRoute, `{"resourceLogs":1}`).Refused(400)
			server.Call("POST", rest.LogsRoute, "\xff", "Content-Type", "application/x-protobuf").Refused(400)
			server.Call("POST", rest.LogsRoute, "a", "Content-Type", "text/plain").Refused(415)
			page.Call("POST", rest.LogsRoute, `{}`).Refused(403)
			me.Call("POST", rest.LogsRoute, `{}`).Refused(403)
		},
	}.Run(t)
}
