package http_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

const segmentsPath = "/api/v1/segments"

func segmentPath(key string, rest ...string) string {
	return segmentsPath + "/" + key + strings.Join(rest, "")
}

// createSegment creates a segment with rules, which may be empty.
func createSegment(me *nodetest.Client, key, rules string) map[string]any {
	return me.Call("POST", segmentsPath, fmt.Sprintf(`{"key":%q,"rules":[%s]}`, key, rules)).Want(201).Object()
}

// ofPlan is a rule for people with a plan.
func ofPlan(plan string) string {
	return fmt.Sprintf(`{"conditions":[{"attribute":"plan","op":"in","values":[%q]}]}`, plan)
}

// ofSegment is a rule for people in segments.
func ofSegment(keys ...string) string {
	return `{"conditions":[{"op":"in_segment","values":["` + strings.Join(keys, `","`) + `"]}]}`
}

// flagFor creates a flag that is true for people in segments.
func flagFor(me *nodetest.Client, key string, segments ...string) {
	me.CreateEnabledFlag(key, nil)
	rule := strings.TrimSuffix(ofSegment(segments...), "}") + `,"serve":{"value":true}}`
	me.SetRules(key, `{"rules":[`+rule+`]}`).Want(200)
	me.SetFallthrough(key, `{"serve":{"value":false}}`).Want(200)
}

// members changes a list of a segment.
func members(me *nodetest.Client, key, body string) *nodetest.Answer {
	return me.Call("POST", segmentPath(key, "/members"), body)
}

func TestSegments(t *testing.T) {
	nodetest.Cases{
		"a segment is created, changed and deleted": func(t *testing.T, me *nodetest.Client) {
			created := me.Call("POST", segmentsPath, `{"key":"beta","name":"Beta","description":"d","tags":["x","x"],"rules":[`+
				ofPlan("pro")+`]}`).Want(201)
			nodetest.Same(t, "the place", created.Header.Get("Location"), segmentPath("beta"))
			shown := created.Object()
			nodetest.Members(t, "the segment", shown, "id", "key", "name", "description", "tags", "version", "rules", "counts",
				"usedBy", "private", "createdAt", "updatedAt")
			created.Shows(map[string]any{
				"key": "beta", "name": "Beta", "description": "d", "tags": []any{"x"}, "version": 2,
				"counts": map[string]any{"included": 0, "excluded": 0}, "usedBy": 0,
			})
			got := me.Call("GET", segmentPath("beta"), nil).Want(200)
			nodetest.Same(t, "what GET shows", got.Object(), shown)
			nodetest.Same(t, "its tag", got.Header.Get("ETag"), `"2"`)
			me.Call("PATCH", segmentPath("beta"), `{"name":"B","description":null}`, "If-Match", `"2"`).Want(200).
				Shows(map[string]any{"name": "B", "description": "", "version": 3})
			me.Call("PATCH", segmentPath("beta"), `{"name":"C"}`, "If-Match", `"2"`).Refused(412)
			me.Call("PATCH", segmentPath("beta"), `{"name":""}`).Refused(422, "name")
			me.Call("POST", segmentsPath, `{"key":"beta"}`).Refused(409)
			me.Call("POST", segmentsPath, `{"key":"-"}`).Refused(422, "key")
			createSegment(me, "alpha", "")
			nodetest.Same(t, "the list", nodetest.Column(me.Call("GET", segmentsPath, nil).Want(200).List(), "key"),
				[]any{"alpha", "beta"})
			nodetest.Same(t, "of a tag", nodetest.Column(me.Call("GET", segmentsPath+"?tag=x&q=BET", nil).Want(200).List(), "key"),
				[]any{"beta"})
			me.Call("DELETE", segmentPath("beta"), nil).Want(204)
			me.Call("GET", segmentPath("beta"), nil).Refused(404)
			me.Call("GET", segmentPath("beta?version=3"), nil).Want(200).Shows(map[string]any{"name": "B", "version": 3})
			nodetest.Same(t, "the history", nodetest.Column(me.Call("GET", segmentPath("beta", "/history"), nil).Want(200).List(),
				"action"), []any{"deleted", "updated", "rules_changed", "created"})
			nodetest.Same(t, "the trail", nodetest.Column(
				me.Call("GET", "/api/v1/audit?resourceType=segment&resourceId=beta&limit=1", nil).Want(200).List(), "action"),
				[]any{"segment.deleted"})
		},
		"members are added and removed": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", "")
			members(me, "beta", `{"list":"included","add":["b","a","a"],"remove":["x"]}`).Want(200).
				Shows(map[string]any{"added": 2, "removed": 0, "unchanged": 1})
			members(me, "beta", `{"list":"included","add":["b","c"],"remove":["a"]}`).Want(200).
				Shows(map[string]any{"added": 1, "removed": 1, "unchanged": 1})
			members(me, "beta", `{"list":"excluded","add":["e"]}`).Want(200).Shows(map[string]any{"added": 1})
			members(me, "beta", `{"list":"excluded","add":["e"]}`).Want(200).Shows(map[string]any{"added": 0, "unchanged": 1})
			list := func(query string) any {
				return me.Call("GET", segmentPath("beta", "/members"+query), nil).Want(200).JSON()
			}
			nodetest.Same(t, "the included", list("?list=included"), []any{"b", "c"})
			nodetest.Same(t, "the excluded", list("?list=excluded"), []any{"e"})
			nodetest.Same(t, "of a version", list("?version=2"), []any{"a", "b"})
			page := me.Call("GET", segmentPath("beta", "/members?limit=1"), nil).Want(200)
			nodetest.Same(t, "a page", []any{page.JSON(), page.Header.Get("X-Total-Count")}, []any{[]any{"b"}, "2"})
			members(me, "beta", `{"list":"others"}`).Refused(422, "list")
			members(me, "beta", `{"list":"included","add":["a"],"remove":["a"]}`).Refused(422, "remove[0]")
			members(me, "beta", `{"list":"included","add":["",`+fmt.Sprintf("%q", strings.Repeat("x", 257))+`]}`).
				Refused(422, "add[0]", "add[1]")
			members(me, "none", `{"list":"included","add":["a"]}`).Refused(404)
		},
		"members come as CSV": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", "")
			send := func(query, text string) *nodetest.Answer {
				return me.Call("POST", segmentPath("beta", "/members"+query), text, "Content-Type", "text/csv")
			}
			send("?list=included", "\xef\xbb\xbfa\r\n\"b,\"\"c\"\r\na\n").Want(200).Shows(map[string]any{"added": 2})
			nodetest.Same(t, "the list", me.Call("GET", segmentPath("beta", "/members"), nil).Want(200).JSON(),
				[]any{"a", `b,"c`})
			send("", "a\n").Refused(422, "list")
			send("?list=included", "a,b\n").Refused(422, "body")
			send("?list=included", "a\n\xff\n").Refused(422, "body")
			send("?list=included", "a\n\"b\n").Refused(422, "body")
			send("?list=included", strings.Repeat("a\n", 10_001)).Refused(422, "add")
			me.Call("POST", segmentPath("beta", "/rules"), "a\n", "Content-Type", "text/csv").Want(405)
			me.Call("PUT", segmentPath("beta", "/rules"), "a\n", "Content-Type", "text/csv").Refused(415)
		},
		"flags serve who is in a segment, and it names them": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", ofPlan("pro"))
			createSegment(me, "outer", ofSegment("beta"))
			flagFor(me, "k", "outer")
			me.Evaluate("k", `{"attributes":{"plan":"pro"}}`).Want(200).Shows(map[string]any{"value": true})
			me.Evaluate("k", `{"targetingKey":"ada"}`).Want(200).Shows(map[string]any{"value": false})
			members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
			me.Evaluate("k", `{"targetingKey":"ada"}`).Want(200).Shows(map[string]any{"value": true, "flagVersion": 4})
			nodetest.Same(t, "the users", me.Call("GET", segmentPath("outer", "/flags"), nil).Want(200).JSON().([]any)[0].(map[string]any)["flagKey"], "k")
			nodetest.Same(t, "the users", me.Call("GET", segmentPath("beta", "/flags"), nil).Want(200).JSON().([]any)[0].(map[string]any)["segmentKey"], "outer")
			me.Call("GET", segmentPath("beta"), nil).Want(200).Shows(map[string]any{"usedBy": 1})
			for _, key := range []string{"beta", "outer"} {
				me.Call("DELETE", segmentPath(key), nil).Refused(409)
			}
			me.SetRules("k", `{"rules":[]}`).Want(200)
			me.Call("DELETE", segmentPath("outer"), nil).Want(204)
			me.Call("DELETE", segmentPath("beta"), nil).Want(204)
			me.Call("POST", nodetest.FlagPath("k", "/revert"), `{"version":3}`).Refused(409)
		},
		"rules refer to segments that exist, without cycles and long chains": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.SetRules("k", `{"rules":[`+strings.TrimSuffix(ofSegment("none"), "}")+`,"serve":{"value":true}}]}`).
				Refused(422, "rules[0].conditions[0].values[0]")
			me.SetRules("k", `{"rules":[{"conditions":[{"attribute":"a","op":"in_segment","values":["none"]},
				{"op":"in","values":["x"]},{"attribute":"$now","op":"in","values":["x"]},{"attribute":"$x","op":"exists"}],
				"serve":{"value":true}}]}`).Refused(422, "rules[0].conditions[0].attribute",
				"rules[0].conditions[0].values[0]", "rules[0].conditions[1].attribute", "rules[0].conditions[2].attribute",
				"rules[0].conditions[3].attribute")
			createSegment(me, "s1", "")
			for i := 2; i <= 4; i++ {
				createSegment(me, fmt.Sprint("s", i), ofSegment(fmt.Sprint("s", i-1)))
			}
			me.Call("POST", segmentsPath, `{"key":"s5","rules":[`+ofSegment("s4")+`]}`).
				Refused(422, "rules[0].conditions[0].values[0]")
			createSegment(me, "s0", "")
			set := func(key, rules string) *nodetest.Answer {
				return me.Call("PUT", segmentPath(key, "/rules"), `{"rules":[`+rules+`]}`)
			}
			set("s1", ofSegment("s0")).Refused(422, "rules[0].conditions[0].values[0]")
			cycle := set("s1", ofSegment("s4")).Refused(422, "rules[0].conditions[0].values[0]")
			if text := string(cycle.Body); !strings.Contains(text, "s1 → s4 → s3 → s2 → s1") {
				cycle.T.Errorf("the refusal has no path: %s", text)
			}
			set("s1", ofSegment("s1")).Refused(422, "rules[0].conditions[0].values[0]")
			set("s1", `{"conditions":[],"serve":{"value":true}}`).Refused(422, "rules[0].serve")
		},
		"answers can be had again": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", ofPlan("pro"))
			flagFor(me, "k", "beta")
			ask := func(query string) *nodetest.Answer {
				return me.Call("POST", nodetest.FlagPath("k", "/evaluate"+query), `{"targetingKey":"ada"}`)
			}
			before := ask("").Want(200)
			members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
			after := ask("").Want(200)
			members(me, "beta", `{"list":"included","remove":["ada"]}`).Want(200)
			again := ask("").Want(200)
			for _, then := range []*nodetest.Answer{before, after, again} {
				revision := then.Object()["revision"].(string)
				nodetest.Same(t, "the answer of "+revision, string(ask("?revision="+url.QueryEscape(revision)).Want(200).Body),
					string(then.Body))
				_, at, _ := strings.Cut(revision, "@")
				nodetest.Same(t, "the answer at "+at, string(ask("?at="+at).Want(200).Body), string(then.Body))
				many := me.Call("POST", manyPath+"?at="+at, `{"targetingKey":"ada"}`).Want(200).Raw("flags")
				nodetest.Same(t, "the answers at "+at, many, `{"k":`+string(then.Body)+`}`)
			}
			nodetest.Same(t, "the answer of a version", string(ask("?version=4").Want(200).Body), string(before.Body))
			explained := ask("?explain=true").Want(200).Object()["explanation"].(map[string]any)["steps"].([]any)
			nodetest.Same(t, "the step", explained[2], map[string]any{
				"step": "segment", "outcome": "not_member", "key": "beta", "version": 4,
			})
		},
		"a check says why": func(t *testing.T, me *nodetest.Client) {
			rule := createSegment(me, "beta", ofPlan("pro"))["rules"].([]any)[0].(map[string]any)["id"]
			members(me, "beta", `{"list":"excluded","add":["eve"]}`).Want(200)
			check := func(query, body string) map[string]any {
				return me.Call("POST", segmentPath("beta", "/check"+query), body).Want(200).Object()
			}
			nodetest.Same(t, "by a rule", check("", `{"attributes":{"plan":"pro"}}`)["because"], map[string]any{"ruleId": rule})
			nodetest.Same(t, "by a list", check("", `{"targetingKey":"eve","attributes":{"plan":"pro"}}`), map[string]any{
				"member": false, "because": map[string]any{"list": "excluded"}, "conditions": []any{},
			})
			none := check("", `{"targetingKey":"bob"}`)
			nodetest.Same(t, "by nothing", []any{none["member"], none["because"], len(none["conditions"].([]any))}, []any{false, nil, 1})
			nodetest.Same(t, "earlier", check("?version=2", `{"targetingKey":"eve","attributes":{"plan":"pro"}}`)["member"], true)
			me.Call("POST", segmentPath("none", "/check"), `{}`).Refused(404)
			me.Call("POST", segmentPath("beta", "/check?x=1"), `{}`).Refused(422, "x")
		},
		"a check tries rules": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "staff", ofPlan("team"))
			rule := createSegment(me, "beta", ofPlan("pro"))["rules"].([]any)[0].(map[string]any)["id"]
			members(me, "beta", `{"list":"excluded","add":["eve"]}`).Want(200)
			check := func(query, body string) *nodetest.Answer {
				return me.Call("POST", segmentPath("beta", "/check"+query), body)
			}
			because := func(body string) any { return check("", body).Want(200).Object()["because"] }
			team := `"attributes":{"plan":"team"}`
			inStaff := `{"conditions":[{"op":"in_segment","values":["staff"]}]}`
			nodetest.Same(t, "saved", because(`{`+team+`}`), nil)
			nodetest.Same(t, "a new rule", because(`{`+team+`,"rules":[`+inStaff+`]}`), map[string]any{"ruleId": "rules[0]"})
			nodetest.Same(t, "a list decides first", because(`{"targetingKey":"eve",`+team+`,"rules":[`+inStaff+`]}`),
				map[string]any{"list": "excluded"})
			kept := fmt.Sprintf(`{"attributes":{"plan":"pro"},"rules":[{"id":%q,"conditions":[]}]}`, rule)
			nodetest.Same(t, "a changed rule", because(kept), map[string]any{"ruleId": rule})
			nodetest.Same(t, "none", because(`{"attributes":{"plan":"pro"},"rules":[]}`), nil)
			check("", `{"rules":[{"conditions":[{"op":"in_segment","values":["beta"]}]}]}`).
				Refused(422, "rules[0].conditions[0].values[0]")
			check("", `{"rules":[{"conditions":[{"attribute":"a","op":"like","values":[]}]}]}`).
				Refused(422, "rules[0].conditions[0].op")
			check("?version=1", `{"rules":[]}`).Refused(422, "rules")
			nodetest.Same(t, "nothing is stored", me.Call("GET", segmentPath("beta"), nil).Want(200).Object()["version"], 3.0)
		},
		"a segment is compared and reverted": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", ofPlan("pro"))
			members(me, "beta", `{"list":"included","add":["a","b"]}`).Want(200)
			members(me, "beta", `{"list":"included","remove":["a"]}`).Want(200)
			me.Call("PUT", segmentPath("beta", "/rules"), `{"rules":[]}`).Want(200)
			diff := me.Call("GET", segmentPath("beta", "/diff?from=3&to=5"), nil).Want(200).Object()
			nodetest.Same(t, "the fields", nodetest.Column(objects(diff["changes"]), "field")[1:],
				[]any{"rules.order", "included"})
			nodetest.Same(t, "the versions", nodetest.Column(me.Call("GET", segmentPath("beta", "/versions"), nil).Want(200).List(),
				"version"), []any{5, 4, 3, 2, 1})
			me.Call("GET", segmentPath("beta", "/versions/3"), nil).Want(200).Shows(map[string]any{"version": 3})
			me.Call("POST", segmentPath("beta", "/revert"), `{"version":3}`).Want(200).Shows(map[string]any{"version": 8})
			nodetest.Same(t, "the members", me.Call("GET", segmentPath("beta", "/members"), nil).Want(200).JSON(), []any{"a", "b"})
			me.Call("DELETE", segmentPath("beta"), nil).Want(204)
			me.Call("POST", segmentPath("beta", "/revert"), `{"version":4}`).Want(200).
				Shows(map[string]any{"counts": map[string]any{"included": 1, "excluded": 0}})
			me.Call("POST", segmentPath("beta", "/revert"), `{"version":40}`).Refused(404)
		},
		"roles and scopes are those of flags": func(_ *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", "")
			viewer := me.Join("viewer")
			viewer.Call("GET", segmentPath("beta"), nil).Want(200)
			members(viewer, "beta", `{"list":"included","add":["a"]}`).Refused(403)
			members(me.Machine("flags:read"), "beta", `{"list":"included","add":["a"]}`).Refused(403)
			members(me.Machine("flags:write"), "beta", `{"list":"included","add":["a"]}`).Want(200)
			me.NewTenant("other").Call("GET", segmentPath("beta"), nil).Refused(404)
		},
	}.Run(t)
}

func objects(list any) (all []map[string]any) {
	for _, each := range list.([]any) {
		all = append(all, each.(map[string]any))
	}
	return all
}
