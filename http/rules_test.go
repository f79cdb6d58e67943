package http_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

// ruleIDs returns the ids of the rules in a response.
func ruleIDs(a *nodetest.Answer) (ids []string) {
	a.T.Helper()
	for _, rule := range a.Object()["rules"].([]any) {
		ids = append(ids, rule.(map[string]any)["id"].(string))
	}
	return ids
}

// everyOperator is a rule with a condition of each operator, with values in unusual spellings.
const everyOperator = `{"name":"Röt <&> \"all\"","conditions":[
	{"attribute":"targetingKey","op":"in","values":["\u00e9\/<&>","é",9007199254740993,1.50,-0,1e2,true,false]},{"attribute":"a.b c.é","op":"contains","values":["x",""],"negate":true},
	{"attribute":"a","op":"starts_with","values":["x"]},{"attribute":"a","op":"ends_with","values":["x"],"negate":false},{"attribute":"a","op":"matches","values":["^a+\\.(b|c)$"]},
	{"attribute":"a","op":"gt","values":[1]},{"attribute":"a","op":"gte","values":[1.0]},{"attribute":"a","op":"lt","values":[1E3]},{"attribute":"a","op":"lte","values":[-1]},
	{"attribute":"a","op":"before","values":["2026-03-14T15:09:26Z"]},{"attribute":"a","op":"after","values":["2026-03-14T15:09:26.535+02:00"]},
	{"attribute":"a","op":"semver_eq","values":["1.2.3"]},{"attribute":"a","op":"semver_gt","values":["1.2.3-beta.1"]},{"attribute":"a","op":"semver_gte","values":["1.2.3+build"]},
	{"attribute":"a","op":"semver_lt","values":["0.0.1"]},{"attribute":"a","op":"semver_lte","values":["10.20.30"]},{"attribute":"a","op":"exists"},{"attribute":"a","op":"exists","values":[]}],
	"serve":{"value":"\u00e9\/<&>"}}`

func TestSettingRules(t *testing.T) {
	nodetest.Cases{
		"rules are set, and shown as they stand": func(t *testing.T, me *nodetest.Client) {
			a, b := me.TwoVariations("k")
			none := me.Rules("k")
			nodetest.Same(t, "of a flag without rules", []string{string(none.Body), none.Header.Get("ETag")},
				[]string{`{"rules":[],"fallthrough":null}`, `"3"`})
			set := me.SetRules("k", fmt.Sprintf(`{"rules":[
				{"name":"testers","conditions":[{"attribute":"plan","op":"in","values":["pro","team"]}],"serve":{"variationId":%[1]q}},
				{"conditions":[],"serve":{"rollout":[{"variationId":%[2]q,"weight":12.500},{"variationId":%[1]q,"weight":0}]}},
				{"conditions":[{"attribute":"a","op":"exists","negate":true}],"serve":{"rollout":[{"variationId":%[2]q,"weight":1e1}],"bucketBy":"company.id"}}]}`, a, b)).Want(200)
			ids := ruleIDs(set)
			condition := func(attribute, op string, negate bool, values ...any) map[string]any {
				return map[string]any{"attribute": attribute, "op": op, "values": append([]any{}, values...), "negate": negate}
			}
			set.Shows(map[string]any{"fallthrough": nil, "rules": []any{
				map[string]any{
					"id":         ids[0],
					"name":       "testers",
					"conditions": []any{condition("plan", "in", false, "pro", "team")},
					"serve":      map[string]any{"variationId": a},
				},
				map[string]any{"id": ids[1], "name": "", "conditions": []any{}, "serve": map[string]any{
					"rollout": []any{
						map[string]any{"variationId": b, "weight": 12.5},
						map[string]any{"variationId": a, "weight": 0},
					},
					"bucketBy": "targetingKey",
				}},
				map[string]any{
					"id":         ids[2],
					"name":       "",
					"conditions": []any{condition("a", "exists", true)},
					"serve": map[string]any{
						"rollout": []any{map[string]any{"variationId": b, "weight": 10}}, "bucketBy": "company.id",
					},
				},
			}})
			nodetest.Members(t, "the answer", set.Object(), "rules", "fallthrough")
			got := me.Rules("k")
			nodetest.Same(t, "what GET shows", []string{string(got.Body), got.Header.Get("ETag"), set.Header.Get("ETag")},
				[]string{string(set.Body), `"4"`, `"4"`})
			nodetest.Same(t, "cleared", string(me.SetRules("k", `{"rules":[]}`).Want(200).Body),
				`{"rules":[],"fallthrough":null}`)
			nodetest.Same(t, "once more", me.SetRules("k", `{"rules":[]}`).Want(200).Header.Get("ETag"), `"5"`)
		},
		"values keep their spelling, and what was shown changes nothing when it is sent": func(t *testing.T, me *nodetest.Client) {
			for kind, value := range map[string]string{"string": `"\u00e9\/<&>"`, "number": `9007199254740993`, "json": `{"b":[1.50,null], "a":"\u2028"}`, "boolean": `true`} {
				me.CreateFlag(kind, map[string]any{"type": kind})
				me.SetFallthrough(kind, `{"serve":{"value":`+value+`}}`).Want(200)
				set := me.SetRules(kind, `{"rules":[`+strings.Replace(everyOperator, `"\u00e9\/<&>"}}`, value+`}}`, 1)+`]}`).
					Want(200)
				got := me.Rules(kind)
				nodetest.Same(t, "what GET shows", string(got.Body), string(set.Body))
				value = strings.ReplaceAll(value, " ", "")
				for _, part := range []string{`{"value":` + value + `}}],"fallthrough":{"value":` + value + `}}`, `["\u00e9\/<&>","é",9007199254740993,1.50,-0,1e2,true,false]`, `"^a+\\.(b|c)$"`, `[1.0]`, `[1E3]`, `"name":"Röt <&> \"all\""`} {
					if !strings.Contains(string(got.Body), part) {
						t.Errorf("%s is not in %s", part, got.Body)
					}
				}
				for _, list := range []string{string(got.Body), `{"rules":` + got.Raw("rules") + `}`} {
					repeated := me.SetRules(kind, list).Want(200)
					nodetest.Same(t, "sent again", []string{string(repeated.Body), repeated.Header.Get("ETag")},
						[]string{string(got.Body), `"3"`})
				}
				me.SetRules(kind, `{"rules":[],"fallthrough":null}`).Refused(422, "fallthrough")
				nodetest.Same(t, "the fallthrough sent again",
					me.SetFallthrough(kind, `{"serve":{"value":`+value+`}}`).Want(200).Header.Get("ETag"), `"3"`)
			}
		},
		"a rule that is kept keeps its id, one without is new": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			rule := func(id, name string) string {
				return strings.Replace(fmt.Sprintf(`{"id":%q,"name":%q,"conditions":[],"serve":{"value":true}}`, id, name),
					`"id":"",`, "", 1)
			}
			list := func(rules ...string) string { return `{"rules":[` + strings.Join(rules, ",") + `]}` }
			first := ruleIDs(me.SetRules("k", list(rule("", "a"), rule("", "b"))).Want(200))
			second := ruleIDs(me.SetRules("k", list(rule(first[1], "b"), rule("", "c"), rule(first[0], "changed"))).Want(200))
			nodetest.Same(t, "ids", []string{second[0], second[2]}, []string{first[1], first[0]})
			if second[1] == first[0] || second[1] == first[1] || uuid.Validate(second[1]) != nil {
				t.Errorf("the new one of %v has the id %s", first, second[1])
			}
			me.SetRules("k", list(strings.Replace(rule("", "n"), "{", `{"id":null,`, 1))).Want(200)
			me.SetRules("k", list(rule(first[0], "a"), rule("none", "b"), rule("none", "c"))).
				Refused(422, "rules[0].id", "rules[1].id", "rules[2].id")
			kept := ruleIDs(me.Rules("k"))[0]
			me.SetRules("k", list(rule(kept, "a"), rule(kept, "b"))).Refused(422, "rules[1].id")
			me.SetRules("k", list(rule(kept, "a")), "X-Environment", "development").Refused(422, "rules[0].id")
		},
		"environments are apart, and one that the tenant does not have is 404": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.SetRules("k", `{"rules":[{"conditions":[],"serve":{"value":true}}]}`, "X-Environment", "development").Want(200)
			me.SetFallthrough("k", `{"serve":{"value":false}}`, "X-Environment", "development").Want(200)
			nodetest.Same(t, "in production", string(me.Rules("k").Body), `{"rules":[],"fallthrough":null}`)
			nodetest.Same(t, "in development", len(ruleIDs(me.Rules("k", "X-Environment", "development"))), 1)
			me.Call("GET", nodetest.FlagPath("k", "/rules"), nil, "X-Environment", "none").Refused(404)
			me.SetRules("k", `{"rules":[]}`, "X-Environment", "none").Refused(404)
			me.SetFallthrough("k", `{"serve":null}`, "X-Environment", "none").Refused(404)
		},
		"a fallthrough is set and unset": func(t *testing.T, me *nodetest.Client) {
			a, b := me.TwoVariations("k")
			version := 3
			for _, c := range [][2]string{
				{`{"serve":{"variationId":"` + a + `"}}`, `{"serve":{"variationId":"` + a + `"}}`},
				{`{"serve":{"variationId":"` + b + `","value":null,"rollout":null,"bucketBy":null}}`, `{"serve":{"variationId":"` + b + `"}}`},
				{`{"serve":{"rollout":[{"variationId":"` + a + `","weight":1}]}}`, `{"serve":{"rollout":[{"variationId":"` + a + `","weight":1}],"bucketBy":"targetingKey"}}`},
				{`{"serve":{"value":"x"}}`, `{"serve":{"value":"x"}}`},
				{`{"serve":null}`, `{"serve":null}`},
			} {
				version++
				for range 2 {
					set := me.SetFallthrough("k", c[0]).Want(200)
					nodetest.Same(t, c[0], []string{string(set.Body), set.Header.Get("ETag")},
						[]string{c[1], fmt.Sprintf(`"%d"`, version)})
					nodetest.Same(t, c[0]+" in GET", me.Rules("k").Raw("fallthrough"),
						strings.TrimSuffix(strings.TrimPrefix(c[1], `{"serve":`), "}"))
				}
			}
			me.SetRules("k", `{"rules":[{"conditions":[],"serve":{"value":"x"}}]}`).
				Want(200).
				Shows(map[string]any{"fallthrough": nil})
			me.SetFallthrough("k", `{"serve":{"value":"y"}}`).Want(200)
			me.SetRules("k", `{"rules":[]}`).Want(200).Shows(map[string]any{"fallthrough": map[string]any{"value": "y"}})
			me.SetFallthrough("k", `{}`).Refused(422, "serve")
			me.CreateFlag("json", map[string]any{"type": "json"})
			nodetest.Same(t, "null of a flag of JSON",
				string(me.SetFallthrough("json", `{"serve":{"value":null}}`).Want(200).Body), `{"serve":{"value":null}}`)
			nodetest.Same(t, "in GET", string(me.Rules("json").Body), `{"rules":[],"fallthrough":{"value":null}}`)
		},
		"a change expects a version, and says why": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			rules := `{"rules":[{"conditions":[],"serve":{"value":true}}]}`
			for _, stale := range []string{`"2"`, `W/"2"`} {
				a := me.SetRules("k", rules, "If-Match", stale).Refused(412)
				nodetest.Same(t, "the ETag", a.Header.Get("ETag"), `"1"`)
				me.SetFallthrough("k", `{"serve":null}`, "If-Match", stale).Refused(412)
			}
			me.SetRules("k", rules, "If-Match", `1`).Refused(422, "If-Match")
			me.SetRules("k", rules, "If-Match", `W/"1"`, "X-Change-Reason", "why").Want(200)
			me.SetFallthrough("k", `{"serve":{"value":true}}`, "If-Match", `"2"`, "X-Change-Reason", "why not").Want(200)
			nodetest.Same(t, "reasons", nodetest.Column(me.History("k", ""), "reason"), []string{"why not", "why", ""})
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 3})
		},
	}.Run(t)
}

func TestRulesThatAreRefused(t *testing.T) {
	nodetest.Cases{
		"all that is wrong is named at once": func(t *testing.T, me *nodetest.Client) {
			a, _ := me.TwoVariations("k")
			me.SetRules("k", `{"rules":[
				{"id":"none","name":"`+strings.Repeat("é", 201)+`","conditions":[
					{"attribute":"","op":"in","values":["a",null,{}]},{"attribute":"a..b","op":"like","values":["a"]},{"attribute":"a","op":"matches","values":["(","ok",1]},
					{"attribute":"a","op":"gt","values":["1",true]},{"attribute":"a","op":"before","values":["soon"]},{"attribute":"a","op":"semver_gt","values":["v1.2.3","1.2"]},
					{"attribute":"a","op":"exists","values":[true]},{"attribute":"a","op":"contains"},{}],
				 "serve":{"rollout":[{"variationId":"none","weight":-1},{"variationId":"`+a+`","weight":0.0001},{"variationId":"`+a+`"}],"bucketBy":".a"}},
				{},{"conditions":[],"serve":{}},{"conditions":[],"serve":{"variationId":"none","value":1}},{"conditions":[],"serve":{"rollout":[]}},{"conditions":[],"serve":{"rollout":[{"variationId":"`+a+`","weight":0}]}},
				{"conditions":[],"serve":{"value":"x","bucketBy":"a"}},{"conditions":null,"serve":null}]}`).Refused(422,
				"rules[0].id", "rules[0].name", "rules[0].conditions[0].attribute", "rules[0].conditions[0].values[1]", "rules[0].conditions[0].values[2]", "rules[0].conditions[1].attribute", "rules[0].conditions[1].op",
				"rules[0].conditions[2].values[0]", "rules[0].conditions[2].values[2]", "rules[0].conditions[3].values[0]", "rules[0].conditions[3].values[1]", "rules[0].conditions[4].values[0]",
				"rules[0].conditions[5].values[0]", "rules[0].conditions[5].values[1]", "rules[0].conditions[6].values", "rules[0].conditions[7].values", "rules[0].conditions[8].attribute", "rules[0].conditions[8].op",
				"rules[0].serve.rollout[0].variationId", "rules[0].serve.rollout[0].weight", "rules[0].serve.rollout[1].weight", "rules[0].serve.rollout[2].variationId", "rules[0].serve.rollout[2].weight", "rules[0].serve.bucketBy",
				"rules[1].conditions", "rules[1].serve", "rules[2].serve", "rules[3].serve", "rules[3].serve.variationId", "rules[3].serve.value", "rules[4].serve.rollout", "rules[5].serve.rollout", "rules[6].serve.bucketBy",
				"rules[7].conditions", "rules[7].serve",
			)
			me.SetFallthrough("k", `{"serve":{"rollout":[{"variationId":"none","weight":1},{"variationId":"`+a+`","weight":10000.001}],"bucketBy":""}}`).
				Refused(422, "serve.rollout[0].variationId", "serve.rollout[1].weight", "serve.bucketBy")
			me.SetFallthrough("k", `{"serve":{"variationId":"none"}}`).Refused(422, "serve.variationId")
			me.SetFallthrough("k", `{"serve":{}}`).Refused(422, "serve")
			nodetest.Same(t, "nothing has changed", me.Rules("k").Header.Get("ETag"), `"3"`)
		},
		"odd shapes are refused by name": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for body, fields := range map[string][]string{
				`{}`: {"rules"}, `{"rules":null}`: {"rules"}, `{"rules":{}}`: {"rules"}, `{"rules":"x"}`: {"rules"}, `{"rules":[null]}`: {"rules[0]"}, `{"rules":[[]]}`: {"rules[0]"},
				`{"rules":[1,{"conditions":[],"serve":{"value":true}},"x"]}`: {"rules[0]", "rules[2]"}, `[]`: {"body"}, `null`: {"body"}, `"x"`: {"body"},
				`{"rules":[],"fallthrough":{"value":true}}`: {"fallthrough"}, `{"rules":[],"fallthrough":[]}`: {"fallthrough"}, `{"rules":[],"fallthrough":{"value":1,"x":1}}`: {"fallthrough.x", "fallthrough.value", "fallthrough"}, `{"Rules":[]}`: {"Rules", "rules"},
				`{"rules":[{"conditions":{},"serve":[]}]}`: {"rules[0].conditions", "rules[0].serve"}, `{"rules":[{"conditions":"x","serve":"x"}]}`: {"rules[0].conditions", "rules[0].serve"},
				`{"rules":[{"id":1,"name":[],"salt":"s","conditions":[null,[],{"attribute":1,"op":{},"values":"pro","negate":"true"}],"serve":{"variationId":{},"value":true,"rollout":{},"bucketBy":1,"x":1}}]}`: {
					"rules[0].id", "rules[0].name", "rules[0].salt", "rules[0].conditions[0]", "rules[0].conditions[1]", "rules[0].conditions[2].attribute", "rules[0].conditions[2].op", "rules[0].conditions[2].values",
					"rules[0].conditions[2].negate", "rules[0].serve.variationId", "rules[0].serve.rollout", "rules[0].serve.bucketBy", "rules[0].serve.x",
				},
				`{"rules":[{"conditions":[{"attribute":"a","op":"in","values":{"0":"a"}}],"serve":{"rollout":[null,1,{"variationId":1,"weight":"1","share":1}]}}]}`: {
					"rules[0].conditions[0].values", "rules[0].serve.rollout[0]", "rules[0].serve.rollout[1]", "rules[0].serve.rollout[2].variationId", "rules[0].serve.rollout[2].weight", "rules[0].serve.rollout[2].share",
				},
				`{"rules":[{"conditions":[{"attribute":null,"op":null,"values":null,"negate":null}],"serve":{"variationId":null,"value":null,"rollout":null,"bucketBy":null}}]}`: {
					"rules[0].conditions[0].attribute", "rules[0].conditions[0].op", "rules[0].serve.value",
				},
			} {
				me.SetRules("k", body).Refused(422, fields...)
			}
			for body, fields := range map[string][]string{
				`{"serve":[]}`: {"serve"}, `{"serve":"x"}`: {"serve"}, `{"serve":true}`: {"serve"}, `{"serve":{"variationId":1,"rollout":[1],"x":null}}`: {"serve.variationId", "serve.rollout[0]", "serve.x"},
				`{"Serve":null}`: {"Serve", "serve"}, `null`: {"body"}, `[]`: {"body"}, `{"serve":null,"value":true}`: {"value"}, `{"serve":{"rollout":[{"variationId":null,"weight":null}]}}`: {"serve.rollout[0].variationId", "serve.rollout[0].weight"},
			} {
				me.SetFallthrough("k", body).Refused(422, fields...)
			}
			for _, path := range []string{"/rules", "/fallthrough"} {
				for _, body := range []string{`{`, `{"rules":[}`, `{"rules":[],"rules":[]}`, `{"serve":{"value":1,"value":2}}`, "{\"rules\":[\"\xff\"]}", `{"serve":{"value":"\u0000"}}`, `{"rules":[]} x`, `{"serve":` + strings.Repeat("[", 70), ""} {
					me.Call("PUT", nodetest.FlagPath("k", path), body).Refused(400)
				}
				me.Call("PUT", nodetest.FlagPath("k", path), `{}`, "Content-Type", "text/plain").Refused(415)
				me.Call("POST", nodetest.FlagPath("k", path), `{}`).Refused(405)
			}
			nodetest.Same(t, "nothing has changed", me.Rules("k").Header.Get("ETag"), `"1"`)
		},
		"the largest rules are set and replaced, and a larger body is refused": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"type": "number"})
			many := func(n int, one string) string { return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]" }
			rule := func(conditions string) string { return `{"conditions":` + conditions + `,"serve":{"value":1}}` }
			condition := func(values string) string { return `{"attribute":"a","op":"in","values":` + values + `}` }
			full := `{"rules":` + many(100, rule(many(50, condition(`["x"]`)))) + `}`
			me.SetRules("k", full).Want(200)
			me.SetRules("k", `{"rules":`+many(1, rule(many(1, condition(many(1000, `"x"`)))))+`}`).Want(200)
			me.SetRules("k", full).Want(200)
			nodetest.Same(t, "rules", len(ruleIDs(me.Rules("k"))), 100)
			large := func(n int) string {
				return `{"rules":[` + rule(many(1, condition(`["`+strings.Repeat("x", n)+`"]`))) + `]}`
			}
			me.SetRules("k", large(392_000)).Want(200)
			me.SetRules("k", large(392_500)).Want(200)
			me.SetRules("k", large(1<<20)).Refused(400)
		},
	}.Run(t)
}

func TestRulesAndTheirFlag(t *testing.T) {
	nodetest.Cases{
		"rules can be changed in any status, and are gone with the flag": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for i, status := range []string{"inactive", "archived", "active"} {
				me.Call("PATCH", nodetest.FlagPath("k"), map[string]any{"status": status}).Want(200)
				me.SetRules("k", fmt.Sprintf(`{"rules":[{"name":"%d","conditions":[],"serve":{"value":true}}]}`, i)).Want(200)
				me.SetFallthrough("k", fmt.Sprintf(`{"serve":{"value":%t}}`, i%2 == 0)).Want(200)
			}
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			me.Call("GET", nodetest.FlagPath("k", "/rules"), nil).Refused(404)
			me.SetRules("k", `{"rules":[]}`).Refused(404)
			me.SetFallthrough("k", `{"serve":null}`).Refused(404)
			me.CreateFlag("k", nil)
			nodetest.Same(t, "in the next life", string(me.Rules("k").Body), `{"rules":[],"fallthrough":null}`)
		},
		"a variation that is served cannot be removed, and can be changed": func(t *testing.T, me *nodetest.Client) {
			a, b := me.TwoVariations("k")
			path := nodetest.FlagPath("k", "/variations/", a)
			refusal := func() string {
				t.Helper()
				return me.Call("DELETE", path, nil).Refused(409).Object()["detail"].(string)
			}
			me.SetRules("k", `{"rules":[{"conditions":[],"serve":{"variationId":"`+b+`"}},{"name":"beta","conditions":[],"serve":{"rollout":[{"variationId":"`+a+`","weight":0},{"variationId":"`+b+`","weight":1}]}}]}`).
				Want(200)
			me.SetFallthrough("k", `{"serve":{"variationId":"`+a+`"}}`, "X-Environment", "development").Want(200)
			nodetest.Same(t, "detail", refusal(),
				"the variation is still served by rule 2 (beta) in production, the fallthrough in development")
			me.Call("PATCH", path, `{"value":"changed","name":"c"}`).Want(200)
			me.SetRules("k", `{"rules":[]}`).Want(200)
			nodetest.Same(t, "detail", refusal(), "the variation is still served by the fallthrough in development")
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant+"/environments/development", nil).Want(204)
			me.Call("DELETE", path, nil).Want(204)
			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"development"}`).Want(201)
			nodetest.Same(t, "an environment that is added again", string(me.Rules("k", "X-Environment", "development").Body),
				`{"rules":[],"fallthrough":null}`)
		},
		"a flag of another tenant is 404 just as a missing one": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			other := me.NewTenant("other")
			for _, key := range []string{"k", "none"} {
				other.Call("GET", nodetest.FlagPath(key, "/rules"), nil).Refused(404)
				other.SetRules(key, `{"rules":[]}`).Refused(404)
				other.SetFallthrough(key, `{"serve":null}`).Refused(404)
			}
		},
		"the history shows the rules that changed, whole, before and after, without salts": func(t *testing.T, me *nodetest.Client) {
			a, _ := me.TwoVariations("k")
			first := me.SetRules("k", `{"rules":[`+everyOperator+`,{"conditions":[],"serve":{"rollout":[{"variationId":"`+a+`","weight":1}]}}]}`, "X-Environment", "development").
				Want(200)
			ids := ruleIDs(first)
			elsewhere := []string{"X-Environment", "development"}
			moved := me.SetRules("k", fmt.Sprintf(`{"rules":[{"id":%q,"conditions":[],"serve":{"variationId":%q}},{"id":%q,"conditions":[],"serve":{"value":""}}]}`, ids[1], a, ids[0]), elsewhere...).
				Want(200)
			changed := me.SetRules("k", fmt.Sprintf(`{"rules":[{"id":%q,"conditions":[],"serve":{"variationId":%q}},{"id":%q,"name":"n","conditions":[],"serve":{"value":""}}]}`, ids[1], a, ids[0]), elsewhere...).
				Want(200)
			me.SetRules("k", fmt.Sprintf(`{"rules":[{"id":%q,"conditions":[],"serve":{"variationId":%q}}]}`, ids[1], a), elsewhere...).
				Want(200)
			rule := func(set *nodetest.Answer, i int) any { return set.Object()["rules"].([]any)[i] }
			me.SetFallthrough("k", `{"serve":{"rollout":[{"variationId":"`+a+`","weight":1}]}}`).Want(200)
			me.SetFallthrough("k", `{"serve":null}`).Want(200)
			served := map[string]any{"rollout": []any{map[string]any{"variationId": a, "weight": 1}}, "bucketBy": "targetingKey"}
			entries := me.Call("GET", nodetest.FlagPath("k", "/history?limit=6"), nil).Want(200)
			for i, want := range []struct {
				action, environment string
				changes             map[string]any
			}{
				{"fallthrough_changed", "production", map[string]any{"fallthrough": change(served, nil)}},
				{"fallthrough_changed", "production", map[string]any{"fallthrough": change(nil, served)}},
				{"rules_changed", "development", map[string]any{
					"rules." + ids[0]: change(rule(changed, 1), nil), "rules.order": change([]string{ids[1], ids[0]}, []string{ids[1]}),
				}},
				{"rules_changed", "development", map[string]any{"rules." + ids[0]: change(rule(moved, 1), rule(changed, 1))}},
				{"rules_changed", "development", map[string]any{
					"rules." + ids[0]: change(rule(first, 0), rule(moved, 1)), "rules." + ids[1]: change(rule(first, 1), rule(moved, 0)),
					"rules.order": change(ids, []string{ids[1], ids[0]}),
				}},
				{"rules_changed", "development", map[string]any{
					"rules." + ids[0]: change(nil, rule(first, 0)), "rules." + ids[1]: change(nil, rule(first, 1)), "rules.order": change([]string{}, ids),
				}},
			} {
				entry := entries.List()[i]
				nodetest.Same(t, "action and environment", []any{entry["action"], entry["environment"]},
					[]string{want.action, want.environment})
				nodetest.Same(t, "changes", entry["changes"], want.changes)
			}
			if shown := string(entries.Body); strings.Contains(shown, "salt") ||
				!strings.Contains(shown, `"\u00e9\/<&>","é",9007199254740993,1.50,-0,1e2`) {
				t.Errorf("the history shows %s", shown)
			}
			for query, want := range map[string][]int{
				"?action=rules_changed": {7, 6, 5, 4}, "?action=fallthrough_changed": {9, 8}, "?environment=development": {7, 6, 5, 4}, "?environment=production": {9, 8},
				"?action=rules_changed&environment=production": {}, "?action=fallthrough_changed&environment=production&limit=1": {9},
			} {
				nodetest.Same(t, query, nodetest.Column(me.History("k", query), "version"), want)
			}
		},
	}.Run(t)
}
