package http_test

import (
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func flagRulesPath(c *nodetest.Client) string { return "/api/v1/tenants/" + c.Tenant + "/flag-rules" }

func TestFlagRules(t *testing.T) {
	naming := map[string]any{"pattern": "[a-z]+-[0-9]+", "example": "shop-1", "hint": "team and ticket"}
	nodetest.Cases{
		"members read them, admins write them": func(t *testing.T, me *nodetest.Client) {
			none := map[string]any{"naming": nil, "requireReason": []any{}, "requireOwner": false}
			nodetest.Same(t, "at first", me.Call("GET", flagRulesPath(me), nil).Want(200).Object(), none)
			rules := map[string]any{"naming": naming, "requireReason": []any{"production"}, "requireOwner": true}
			me.Call("PUT", flagRulesPath(me), rules).Want(200).Shows(rules)
			viewer := me.Join(events.ViewerRole)
			nodetest.Same(t, "set", viewer.Call("GET", flagRulesPath(me), nil).Want(200).Object(), rules)
			me.Join(events.DeveloperRole).Call("PUT", flagRulesPath(me), none).Refused(403)
			audit := me.Call("GET", "/api/v1/audit?resourceType=tenant&limit=1", nil).Want(200).List()[0]
			nodetest.Same(t, "the audit trail", audit["changes"], map[string]any{
				"naming":        map[string]any{"from": nil, "to": naming},
				"requireReason": map[string]any{"from": []any{}, "to": []any{"production"}},
				"requireOwner":  map[string]any{"from": false, "to": true},
			})
			me.Call("PUT", flagRulesPath(me), `{}`).Want(200).Shows(none)
		},
		"other tenants and machines read nothing": func(_ *testing.T, me *nodetest.Client) {
			stranger := me.Service.SignUp(nodetest.Address())
			stranger.Call("GET", flagRulesPath(me), nil, "X-Tenant-ID", me.Tenant).Refused(403)
			stranger.Call("PUT", flagRulesPath(me), `{"requireOwner":true}`, "X-Tenant-ID", me.Tenant).Refused(403)
			me.Machine("flags:read", "flags:write").Call("GET", flagRulesPath(me), nil).Refused(403)
			me.CreateFlag("k", nil)
		},
		"rules that cannot be met are refused": func(_ *testing.T, me *nodetest.Client) {
			for body, field := range map[string]string{
				`{"naming":{"pattern":"(","example":"a"}}`:   "naming.pattern",
				`{"naming":{"pattern":"","example":"a"}}`:    "naming.pattern",
				`{"naming":{"pattern":"a","example":"ab"}}`:  "naming.example",
				`{"naming":{"pattern":"a|b","example":"c"}}`: "naming.example",
				`{"naming":{"pattern":".*","example":"ü"}}`:  "naming.example",
				`{"requireReason":["production","nowhere"]}`: "requireReason[1]",
			} {
				me.Call("PUT", flagRulesPath(me), body).Refused(422, field)
			}
		},
		"keys of new flags match the pattern": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("early", nil)
			me.Call("PUT", flagRulesPath(me), map[string]any{"naming": naming}).Want(200)
			refused := me.Call("POST", "/api/v1/flags", `{"key":"shop-12a","type":"boolean","name":""}`).Refused(422, "key", "name")
			if body := string(refused.Body); !strings.Contains(body, "shop-1") || !strings.Contains(body, "team and ticket") {
				t.Errorf("the refusal has no example and hint: %s", body)
			}
			me.CreateFlag("shop-12", nil)
			me.Call("PATCH", nodetest.FlagPath("early"), `{"name":"still changed"}`).Want(200)
		},
		"a key that was deleted while it was on begins again without a reason": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			me.Call("PUT", flagRulesPath(me), `{"requireReason":["production"]}`).Want(200)
			me.Call("DELETE", nodetest.FlagPath("k"), nil, "X-Change-Reason", "old").Want(204)
			me.CreateFlag("k", nil)
		},
		"new flags have an owner": func(_ *testing.T, me *nodetest.Client) {
			me.Call("PUT", flagRulesPath(me), `{"requireOwner":true}`).Want(200)
			me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Refused(422, "owner")
			me.CreateFlag("k", map[string]any{"owner": me.UserID})
		},
		"a revert brings back what the rules would not let in": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("early", nil)
			me.Call("DELETE", nodetest.FlagPath("early"), nil).Want(204)
			me.Call("PUT", flagRulesPath(me), map[string]any{"naming": naming, "requireOwner": true}).Want(200)
			me.Call("POST", nodetest.FlagPath("early", "/revert"), `{"version":1}`).Want(200)
		},
		"a cleanup of a sandbox needs neither name nor reason": func(t *testing.T, me *nodetest.Client) {
			s := newSandbox(me)
			before := demoState(t, s)
			s.CreateEnabledFlag("mine", nil)
			s.Call("DELETE", nodetest.FlagPath("new-checkout"), nil).Want(204)
			rules := map[string]any{"naming": naming, "requireReason": []any{"production"}, "requireOwner": true}
			s.Call("PUT", flagRulesPath(s), rules).Want(200)
			s.Call("POST", sandboxPath+"/cleanup/tenant", nil).Want(200)
			nodetest.Same(t, "the demo data", demoState(t, s), before)
		},
		"changes in an environment have a reason": testRequiredReason,
		"a revert of all flags names those that lack a reason": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("a", nil)
			me.CreateEnabledFlag("b", nil)
			at := now()
			me.Call("POST", nodetest.FlagPath("a", "/disable"), nil).Want(200)
			me.Call("PATCH", nodetest.FlagPath("b"), `{"name":"N"}`).Want(200)
			me.Call("POST", nodetest.FlagPath("b", "/disable"), nil).Want(200)
			me.Call("POST", nodetest.FlagPath("b", "/enable"), nil, "X-Environment", "development").Want(200)
			me.Call("PUT", flagRulesPath(me), `{"requireReason":["production"]}`).Want(200)
			for _, dryRun := range []bool{true, false} {
				answer := me.Call("POST", revertPath, map[string]any{"at": at, "dryRun": dryRun}).Want(200).Object()
				detail := answer["failed"].([]any)[0].(map[string]any)["detail"].(string)
				if failed := answer["failed"].([]any); len(failed) != 2 || !strings.Contains(detail, "X-Change-Reason") {
					t.Errorf("with dryRun %v, failed is %v", dryRun, failed)
				}
			}
			me.Call("POST", revertPath, map[string]any{"at": at}, "X-Change-Reason", "back").Want(200).
				Shows(map[string]any{"reverted": []any{"a", "b"}, "failed": []any{}})
		},
		"an environment that is deleted needs no reason any more": func(_ *testing.T, me *nodetest.Client) {
			environments := "/api/v1/tenants/" + me.Tenant + "/environments"
			me.Call("POST", environments, `{"environment":"qa"}`).Want(201)
			me.Call("PUT", flagRulesPath(me), `{"requireReason":["qa"]}`).Want(200)
			me.CreateFlag("k", nil)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "qa", "X-Change-Reason", "launch").Want(200)
			me.Call("DELETE", environments+"/qa", nil).Want(204)
			me.Call("GET", flagRulesPath(me), nil).Want(200).Shows(map[string]any{"requireReason": []any{}})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"n"}`).Want(200)
			me.Call("POST", environments, `{"environment":"qa"}`).Want(201)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "qa").Want(200)
		},
	}.Run(t)
}

func testRequiredReason(_ *testing.T, me *nodetest.Client) {
	me.Call("PUT", flagRulesPath(me), `{"requireReason":["production"]}`).Want(200)
	me.CreateFlag("k", nil)
	needs := func(method, tail string, body any, headers ...string) {
		me.Call(method, nodetest.FlagPath("k", tail), body, headers...).Refused(422, "X-Change-Reason")
	}
	me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"off"}`).Want(200)
	me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
	rules := `{"rules":[{"conditions":[],"serve":{"value":true}}]}`
	needs("PUT", "/rules", rules)
	needs("PUT", "/fallthrough", `{"serve":{"value":true}}`)
	needs("POST", "/enable", nil)
	me.Call("PUT", nodetest.FlagPath("k", "/rules"), rules, "X-Environment", "development").Want(200)
	me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Change-Reason", "launch").Want(200)
	needs("PATCH", "", `{"name":"on"}`)
	needs("POST", "/variations", `{"name":"v","value":true}`)
	needs("DELETE", "", nil)
	needs("POST", "/revert", `{"version":1}`)
	me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"off"}`).Want(200) // which changes nothing
	me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"on"}`, "X-Change-Reason", "typo").Want(200)
	me.Machine("flags:write").Call("PATCH", nodetest.FlagPath("k"), `{"name":"by a machine"}`).Refused(422, "X-Change-Reason")
	me.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
	me.Call("PATCH", nodetest.FlagPath("k"), `{"name":"off again"}`).Want(200)
}
