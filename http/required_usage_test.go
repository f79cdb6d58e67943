package http_test

import (
	"fmt"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/http/rest"
)

func TestRequiredFlagsInUsage(t *testing.T) {
	nodetest.Cases{
		"an evaluation on behalf of another flag is none of its own": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("payments", nil)
			me.CreateEnabledFlag("k", nil)
			require(me, "k", "payments")
			for range 3 {
				me.Evaluate("k", `{"targetingKey":"ada"}`).Want(200)
			}
			me.Call("POST", "/api/v1/flags/evaluate", `{"targetingKey":"ada","flagKeys":["k"]}`).Want(200)
			me.Service.Eventually("the uses are counted", func() bool {
				return requiredOf(me, "payments") == "0 evaluations, 4 required" && requiredOf(me, "k") == "4 evaluations, 0 required"
			})
			whole := me.Call("GET", tenantMetricsPath(me, ""), nil).Want(200).Object()
			nodetest.Same(t, "the tenant's", []any{whole["evaluations"], whole["required"]}, []any{4, 4})
			month := me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/usage", nil).Want(200).Object()
			nodetest.Same(t, "the month's", month["evaluations"], 4)
			flag := me.Call("GET", nodetest.FlagPath("payments"), nil).Want(200).Object()
			nodetest.Same(t, "evaluated", flag["lastEvaluatedAt"], nil)
			if flag["lastRequiredAt"] == nil || flag["lifecycle"] != "live" {
				t.Errorf("the flag that is required: %v", flag)
			}
		},
		"previews count nothing": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("payments", nil)
			me.CreateEnabledFlag("k", nil)
			require(me, "k", "payments")
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?preview=true"), `{"targetingKey":"ada"}`).Want(200)
			me.Evaluate("payments", `{"targetingKey":"ada"}`).Want(200)
			me.Service.Eventually("the use is counted", func() bool {
				return requiredOf(me, "payments") == "1 evaluations, 0 required"
			})
		},
		"a fetch of all flags counts those that only others need": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("payments", nil)
			me.CreateEnabledFlag("k", map[string]any{"clientSide": true})
			require(me, "k", "payments")
			_, page := createKey(me, "browser", nil)
			page.Call("POST", "/ofrep/v1/evaluate/flags", `{"context":{"targetingKey":"ada"}}`).Want(200)
			me.Service.Eventually("the use is counted", func() bool {
				return requiredOf(me, "payments") == "0 evaluations, 1 required"
			})
		},
		"reports have them": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("payments", nil)
			_, server := createKey(me, "server", nil)
			server.Call("POST", rest.UsageRoute, reportOf("r",
				map[string]any{"flagKey": "payments", "value": true, "required": true, "count": 7})).
				Want(202).Shows(map[string]any{"accepted": 1})
			nodetest.Same(t, "what was reported", requiredOf(me, "payments"), "0 evaluations, 7 required")
		},
	}.Run(t)
}

// requiredOf returns what the metrics of a flag show.
func requiredOf(me *nodetest.Client, key string) string {
	body := me.Call("GET", metricsPath(key, ""), nil).Want(200).Object()
	return fmt.Sprintf("%v evaluations, %v required", body["evaluations"], body["required"])
}
