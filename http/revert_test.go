package http_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
)

func TestRevert(t *testing.T) { nodetest.BothEngines(t, testRevert) }

func testRevert(t *testing.T) {
	// seen returns what a flag shows and serves, without values unique to each change.
	seen := func(me *nodetest.Client) string {
		me.Service.T.Helper()
		var all strings.Builder
		for _, environment := range []string{"production", "development"} {
			flag := me.Call("GET", nodetest.FlagPath("k"), nil, "X-Environment", environment).Want(200).Object()
			delete(flag, "version")
			delete(flag, "createdAt")
			delete(flag, "updatedAt")
			delete(flag, "lastEvaluatedAt") // the test evaluates it
			delete(flag, "lifecycle")
			fmt.Fprintln(&all, flag, string(me.Rules("k", "X-Environment", environment).Body))
			for i := range 20 {
				result := me.Evaluate("k", fmt.Sprintf(`{"targetingKey":"u%d","attributes":{"plan":"pro"}}`, i), "X-Environment", environment).
					Want(200).
					Object()
				delete(result, "flagVersion")
				delete(result, "revision")
				fmt.Fprintln(&all, result)
			}
		}
		return all.String()
	}
	revert := func(me *nodetest.Client, body string, headers ...string) *nodetest.Answer {
		me.Service.T.Helper()
		return me.Call("POST", nodetest.FlagPath("k", "/revert"), body, headers...)
	}
	// fill creates a flag whose split and rules depend on ids, salts and orders, and returns its version.
	fill := func(me *nodetest.Client) (version int, variation string) {
		me.Service.T.Helper()
		flag := me.CreateEnabledFlag(
			"k",
			map[string]any{"type": "string", "description": "D", "tags": []string{"b", "a"}, "flag_variations": []any{
				map[string]any{
					"name":   "a",
					"value":  "A",
					"weight": 1,
				},
				map[string]any{"name": "b", "value": "B", "weight": 2.5},
				map[string]any{"name": "c", "value": "C", "weight": 1},
			}},
		)
		variation = flag["variations"].([]any)[0].(map[string]any)["id"].(string)
		me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
		me.SetRules("k", fmt.Sprintf(`{"rules":[{"conditions":[{"attribute":"plan","op":"in","values":["free"]}],"serve":{"value":"x"}},{"conditions":[],"serve":{"rollout":[{"variationId":%q,"weight":1},{"variationId":%q,"weight":1}]}}]}`,
			variation, flag["variations"].([]any)[1].(map[string]any)["id"]), "X-Environment", "development").
			Want(200)
		return 4, variation
	}
	nodetest.Cases{
		"it waits for the processors as other work of the tenant does": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			free := occupy(me.Service.Node.API.Queues.CPU, me.UserID)
			defer free()
			revert(me, `{"version":1}`).Refused(429)
			free()
			revert(me, `{"version":1}`).Want(200)
		},
		"the flag shows and serves what it did, and the history names the version": func(t *testing.T, me *nodetest.Client) {
			version, variation := fill(me)
			before, at := seen(me), time.Now()
			me.SetRules("k", `{"rules":[]}`, "X-Environment", "development").Want(200)
			me.Call("DELETE", nodetest.FlagPath("k", "/variations/", variation), nil).Want(204)
			me.AddVariation("k", `{"name":"a","value":"other","weight":7}`)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"N","description":null,"tags":["z"],"defaultValue":"d","status":"inactive"}`).
				Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
			changed := seen(me)
			a := revert(me, fmt.Sprintf(`{"version":%d}`, version), "X-Change-Reason", "it broke").Want(200)
			nodetest.Same(t, "ETag", a.Header.Get("ETag"), fmt.Sprintf(`"%v"`, a.Object()["version"]))
			nodetest.Same(t, "the flag", seen(me), before)
			newest := me.History("k", "?limit=1")[0]
			nodetest.Same(t, "the newest entry",
				[]any{newest["action"], newest["reason"], newest["changes"].(map[string]any)["version"]},
				[]any{"reverted", "it broke", map[string]any{"from": nil, "to": version}})
			nodetest.Same(t, "entries that are asked for", len(me.History("k", "?action=reverted")), 1)

			nothing := revert(me, fmt.Sprintf(`{"at":%q}`, at.UTC().Format(time.RFC3339Nano))).Want(200)
			nodetest.Same(t, "the version, where there is nothing to do", nothing.Object()["version"], a.Object()["version"])
			revert(me, `{"version":10}`).Want(200)
			nodetest.Same(t, "the flag, forth again", seen(me), changed)
		},
		"a deleted flag comes back, also in place of another": func(t *testing.T, me *nodetest.Client) {
			version, _ := fill(me)
			before := seen(me)
			body := fmt.Sprintf(`{"version":%d}`, version)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			revert(me, body).Want(200)
			nodetest.Same(t, "the flag", seen(me), before)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			me.CreateFlag("k", nil)
			revert(me, body).Want(200)
			nodetest.Same(t, "the flag in place of another", seen(me), before)
		},
		"what is gone is named, and nothing is done": func(t *testing.T, me *nodetest.Client) {
			project, path := me.CreateProject("p")
			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"staging"}`).Want(201)
			me.CreateFlag("k", map[string]any{"projectId": project})
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "staging").Want(200)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/staging", nil).Want(204)
			nodetest.Same(t, "to the version of now", revert(me, `{"version":2}`).Want(200).Object()["version"], 2)
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"N"}`).Want(200)
			if detail := revert(me, `{"version":2}`).Refused(409).Object()["detail"].(string); !strings.Contains(
				detail, "staging",
			) {
				t.Error(detail)
			}
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			me.Call("DELETE", path, nil).Want(204)
			if detail := revert(me, `{"version":1}`).Refused(409).Object()["detail"].(string); !strings.Contains(
				detail, project,
			) {
				t.Error(detail)
			}
			nodetest.Same(t, "the events", len(me.History("k", "")), 4)
		},
		"who may, and what must be sent": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			revert(me, `{}`).Refused(422, "version")
			revert(me, `{"version":1,"at":"2026-01-01T00:00:00Z"}`).Refused(422, "at")
			revert(me, `{"at":"2999-01-01T00:00:00Z"}`).Refused(422, "at")
			revert(me, `{"version":0}`).Refused(422, "version")
			revert(me, `{"version":3}`).Refused(404)
			revert(me, `{"at":"2001-01-01T00:00:00Z"}`).Refused(404)
			revert(me, `{"version":1}`, "If-Match", `"1"`).Refused(412)
			revert(me.Join("viewer"), `{"version":1}`).Refused(403)
			key := "revert-once"
			first := revert(me, `{"version":1}`, "If-Match", `"2"`, "Idempotency-Key", key).Want(200)
			again := revert(me, `{"version":1}`, "If-Match", `"2"`, "Idempotency-Key", key).Want(200)
			nodetest.Same(t, "the same request again", string(again.Body), string(first.Body))
			nodetest.Same(t, "the events", len(me.History("k", "")), 4)
		},
	}.Run(t)
}
