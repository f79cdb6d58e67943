package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func (c *client) evaluate(key string, body any, headers ...string) *answer {
	c.s.t.Helper()
	return c.call("POST", flagPath(key, "/evaluate"), body, headers...)
}

// enabled makes a flag that is on in production.
func (c *client) enabled(key string, fields map[string]any) map[string]any {
	c.s.t.Helper()
	flag := c.createFlag(key, fields)
	c.call("POST", flagPath(key, "/enable"), nil).want(200)
	return flag
}

func TestEvaluation(t *testing.T) {
	cases{
		"a result has exactly these members": func(t *testing.T, me *client) {
			me.enabled("k", nil)
			a := me.evaluate("k", `{"targetingKey":"u","attributes":{"plan":"pro","deep":{"a":[1,null,1e5]}},"environment":"production"}`).want(200)
			members(t, "a result", a.object(), "enabled", "value", "reason", "variationId", "variationName", "ruleId", "flagVersion")
			a.shows(map[string]any{"enabled": true, "value": true, "reason": "FALLTHROUGH", "variationId": nil, "variationName": nil, "ruleId": nil, "flagVersion": 2})
			same(t, "Content-Type", a.header.Get("Content-Type"), "application/json")
		},
		"step 1: no such flag": func(_ *testing.T, me *client) {
			me.evaluate("none", `{}`).refused(404)
			me.enabled("k", nil)
			me.call("DELETE", flagPath("k"), nil).want(204)
			me.evaluate("k", `{}`).refused(404)
		},
		"step 2: an archived flag serves its default, enabled or not": func(_ *testing.T, me *client) {
			me.createFlag("k", map[string]any{"defaultValue": true})
			for _, action := range []string{"/enable", "/disable"} {
				me.call("POST", flagPath("k", action), nil).want(200)
				me.call("PATCH", flagPath("k"), `{"status":"archived"}`).want(200)
				me.evaluate("k", `{}`).want(200).shows(map[string]any{"enabled": false, "value": true, "reason": "ARCHIVED"})
				me.call("PATCH", flagPath("k"), `{"status":"active"}`).want(200)
			}
		},
		"step 3: an inactive flag, or one disabled in the environment, serves its default": func(_ *testing.T, me *client) {
			off := map[string]any{"enabled": false, "value": "off", "reason": "OFF", "variationId": nil, "variationName": nil}
			me.createFlag("k", map[string]any{"type": "string", "defaultValue": "off", "flag_variations": []any{map[string]any{"name": "v", "value": "on", "weight": 1}}})
			me.evaluate("k", `{"targetingKey":"u"}`).want(200).shows(off)
			me.call("POST", flagPath("k", "/enable"), nil, "X-Environment", "development").want(200)
			me.evaluate("k", `{"targetingKey":"u"}`).want(200).shows(off)
			me.call("POST", flagPath("k", "/enable"), nil).want(200)
			me.evaluate("k", `{"targetingKey":"u"}`).want(200).shows(map[string]any{"enabled": true, "value": "on"})
			me.call("PATCH", flagPath("k"), `{"status":"inactive"}`).want(200)
			me.evaluate("k", `{"targetingKey":"u"}`).want(200).shows(off)
			me.evaluate("k", `{}`).want(200).shows(off)
		},
		"step 6: weights split the traffic, the same unit always alike": func(t *testing.T, me *client) {
			me.enabled("k", map[string]any{"type": "string", "defaultValue": "default", "flag_variations": []any{
				map[string]any{"name": "never", "value": "n"}, map[string]any{"name": "a", "value": "A", "weight": 1}, map[string]any{"name": "b", "value": "B", "weight": 3},
			}})
			ids := map[string]string{}
			for _, v := range me.variations("k") {
				ids[v["name"].(string)] = v["id"].(string)
			}
			const units = 200
			served := map[int]string{}
			split := func() map[string]int {
				count := map[string]int{}
				for i := range units {
					body := me.evaluate("k", fmt.Sprintf(`{"targetingKey":"user-%d"}`, i)).want(200).shows(map[string]any{"enabled": true, "reason": "FALLTHROUGH"}).object()
					name := body["variationName"].(string)
					same(t, "the variation", []any{body["variationId"], body["value"]}, []string{ids[name], strings.ToUpper(name)})
					count[name]++
					if before := served[i]; before != "" && before != name && name != "a" {
						t.Errorf("unit %d moved from %s to %s", i, before, name)
					}
					served[i] = name
				}
				return count
			}
			if count := split(); count["never"] > 0 || count["a"] < 20 || count["a"] > 85 {
				t.Errorf("the split of 1 to 3 is %v", count)
			}
			before := fmt.Sprint(served)
			split()
			same(t, "the split again", fmt.Sprint(served), before)
			me.call("PATCH", flagPath("k", "/variations/", ids["a"]), `{"weight":3}`).want(200)
			if count := split(); count["never"] > 0 || count["a"] < 65 || count["a"] > 135 {
				t.Errorf("the split of 3 to 3 is %v", count)
			}
		},
		"step 6: a split needs a targetingKey": func(_ *testing.T, me *client) {
			me.enabled("k", map[string]any{"flag_variations": []any{map[string]any{"name": "v", "value": false, "weight": 0.001}}})
			me.evaluate("k", `{}`).refused(422, "targetingKey")
			me.evaluate("k", `{"targetingKey":"","attributes":{"targetingKey":"u"}}`).refused(422, "targetingKey")
			me.evaluate("k", `{"targetingKey":"u"}`).want(200).shows(map[string]any{"value": false, "variationName": "v", "enabled": true})
			me.evaluate("k", map[string]string{"targetingKey": strings.Repeat("long", 10_000)}).want(200)
			me.evaluate("k", `{"targetingKey":"日本\n🚀"}`).want(200)
		},
		"step 7: a boolean flag serves true": func(_ *testing.T, me *client) {
			me.enabled("k", map[string]any{"flag_variations": []any{map[string]any{"name": "v", "value": false}}})
			me.evaluate("k", `{}`).want(200).shows(map[string]any{"value": true, "enabled": true, "reason": "FALLTHROUGH", "variationId": nil})
		},
		"step 8: any other serves its default": func(_ *testing.T, me *client) {
			for kind, value := range map[string]any{"string": "s", "number": 1.5, "json": map[string]any{"a": []any{nil}}} {
				me.enabled(kind, map[string]any{"type": kind, "defaultValue": value, "flag_variations": []any{map[string]any{"name": "v", "value": value}}})
				me.evaluate(kind, `{}`).want(200).shows(map[string]any{"value": value, "enabled": true, "reason": "FALLTHROUGH", "variationId": nil})
			}
		},
		"every change is served right after its answer": func(_ *testing.T, me *client) {
			me.createFlag("k", map[string]any{"type": "number", "defaultValue": 0})
			for i := 1; i <= 20; i++ {
				me.call("PATCH", flagPath("k"), map[string]int{"defaultValue": i}).want(200)
				me.evaluate("k", `{}`).want(200).shows(map[string]any{"value": i, "reason": "OFF", "flagVersion": 3*i - 1})
				me.call("POST", flagPath("k", "/enable"), nil).want(200)
				me.evaluate("k", `{}`).want(200).shows(map[string]any{"value": i, "enabled": true, "flagVersion": 3 * i})
				me.call("POST", flagPath("k", "/disable"), nil).want(200)
				me.evaluate("k", `{}`).want(200).shows(map[string]any{"enabled": false, "flagVersion": 3*i + 1})
			}
		},
		"the body's environment goes before X-Environment, and that before production": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			me.call("POST", flagPath("k", "/enable"), nil, "X-Environment", "development").want(200)
			for _, test := range []struct {
				body, header string
				on           bool
			}{
				{`{}`, "", false}, {`{}`, "development", true}, {`{"environment":""}`, "development", true}, {`{"environment":"development"}`, "", true},
				{`{"environment":"production"}`, "development", false}, {`{"environment":"development"}`, "production", true}, {`{"environment":"development"}`, "none", true},
			} {
				me.evaluate("k", test.body, "X-Environment", test.header).want(200).shows(map[string]any{"enabled": test.on})
			}
			me.evaluate("k", `{"environment":"none"}`).refused(404)
			me.evaluate("k", `{"environment":"none"}`, "X-Environment", "development").refused(404)
		},
		"attributes reach the rules as they were sent": func(_ *testing.T, me *client) {
			me.enabled("k", map[string]any{"type": "string", "defaultValue": "rest"})
			me.setRules("k", `{"rules":[
				{"conditions":[{"attribute":"n","op":"gt","values":[9007199254740992]}],"serve":{"value":"number"}},
				{"conditions":[{"attribute":"company.plan","op":"in","values":["pro \u00e9","team"]}],"serve":{"value":"nested"}},
				{"conditions":[{"attribute":"tags","op":"in","values":[true]}],"serve":{"value":"boolean"}},
				{"conditions":[{"attribute":"targetingKey","op":"ends_with","values":["@example.com"]}],"serve":{"value":"key"}},
				{"conditions":[{"attribute":"nothing","op":"exists"}],"serve":{"value":"null"}}]}`).want(200)
			for body, value := range map[string]string{
				`{"attributes":{"n":9007199254740993}}`: "number", `{"attributes":{"n":9007199254740992}}`: "rest", `{"attributes":{"n":9007199254740992.0000001}}`: "number", `{"attributes":{"n":1e999}}`: "number",
				`{"attributes":{"n":"9007199254740993"}}`: "rest", `{"attributes":{"company":{"plan":"pro é"}}}`: "nested", `{"attributes":{"company":{"plan":["x","team"]}}}`: "nested", `{"attributes":{"Company":{"plan":"team"}}}`: "rest",
				`{"attributes":{"tags":["a",{"b":1},true]}}`: "boolean", `{"attributes":{"tags":"true"}}`: "rest", `{"targetingKey":"u@example.com"}`: "key", `{"attributes":{"targetingKey":"u@example.com"}}`: "rest",
				`{"targetingKey":null,"attributes":null}`: "rest",
			} {
				me.evaluate("k", body).want(200).shows(map[string]any{"value": value})
			}
		},
		"a split by an attribute needs that one, and names it": func(_ *testing.T, me *client) {
			me.enabled("k", map[string]any{"flag_variations": []any{map[string]any{"name": "v", "value": false}}})
			rollout := func(by string) string {
				return fmt.Sprintf(`{"serve":{"rollout":[{"variationId":%q,"weight":1}],"bucketBy":%q}}`, me.variations("k")[0]["id"], by)
			}
			me.setFallthrough("k", rollout("company.id")).want(200)
			for _, body := range []string{`{"targetingKey":"u"}`, `{"attributes":{"company":{"id":""}}}`, `{"attributes":{"company":{"id":null}}}`, `{"attributes":{"company":"c"}}`} {
				me.evaluate("k", body).refused(422, "attributes.company.id")
			}
			me.evaluate("k", `{"attributes":{"company":{"id":"c"}}}`).want(200).shows(map[string]any{"value": false, "variationName": "v"})
			failure := me.call("POST", manyPath, `{}`).want(200).object()["errors"].(map[string]any)["k"].(map[string]any)
			members(me.s.t, "errors", failure["errors"], "attributes.company.id")
			me.ofrep("k", `{"targetingKey":"u"}`).failed(400, "k", "INVALID_CONTEXT")
			me.setFallthrough("k", rollout("targetingKey")).want(200)
			me.evaluate("k", `{"attributes":{"targetingKey":"u"}}`).refused(422, "targetingKey")
		},
		"bad input is refused": func(_ *testing.T, me *client) {
			me.enabled("k", nil)
			for body, field := range map[string]string{
				`{"targetingKey":5}`: "targetingKey", `{"attributes":[]}`: "attributes", `{"environment":{}}`: "environment", `{"userId":"u"}`: "userId", `{"TargetingKey":"u"}`: "TargetingKey",
			} {
				me.evaluate("k", body).refused(422, field)
			}
			me.evaluate("k", nil).refused(400)
			me.evaluate("k", ``).refused(400)
			me.evaluate("k", `[]`).want(422)
			me.evaluate("k", `{}`, "Content-Type", "text/plain").refused(415)
			me.evaluate("k", `{"attributes":{"small":-1e-999,"long":123456789012345678901234567890}}`).want(200)
		},
		"a tenant's flags are evaluated for its members alone": func(t *testing.T, me *client) {
			me.enabled("k", nil)
			viewer := me.join("viewer")
			viewer.evaluate("k", `{}`).want(200).shows(map[string]any{"value": true})
			viewer.evaluate("k", `{}`, "X-Tenant-ID", "").refused(400)
			stranger := me.with(me.account().token)
			sameProblem(t, stranger.evaluate("k", `{}`, "X-Tenant-ID", me.tenant).refused(403), stranger.evaluate("k", `{}`, "X-Tenant-ID", uuid.NewString()).refused(403))
			me.with("").evaluate("k", `{}`, "X-Tenant-ID", me.tenant).refused(401)
		},
	}.run(t)
}

func TestValuesKeepTheirSpelling(t *testing.T) {
	type spelling struct{ kind, value, stored string }
	exact := func(kind, value string) spelling { return spelling{kind, value, value} }
	spellings := []spelling{
		exact("number", "9007199254740993"), exact("number", "1.0"), exact("number", "-0"), exact("number", "-0.0"), exact("number", "1E+2"), exact("number", "0.10"), exact("number", "1e-400"),
		exact("number", "123456789012345678901234567890.123456789012345678901234567890"),
		exact("string", `"\u00e9"`), exact("string", `"é"`), exact("string", `"\/<>&"`), exact("string", `"\ud83d\ude80"`), exact("string", `"\u2028"`), exact("string", "\"\u2028\""),
		exact("string", `"\u003c\t\u0009"`), exact("string", `"\\u0000"`),
		exact("json", `{"b":1.0,"a":9007199254740993,"\u00e9":[1e2,"\u00e9",null,true]}`), exact("json", `[]`), exact("json", `null`), exact("json", `1e999`), exact("json", `{"a":[-1e999]}`),
		exact("json", `"text"`), exact("json", `{"":{"":""}}`), exact("json", strings.Repeat("[", 61)+strings.Repeat("]", 61)),
		{"json", " {\n\t\"a\" :\r[ 1 , 2 ] } ", `{"a":[1,2]}`}, {"string", `  " a  b "`, `" a  b "`},
	}
	cases{
		"of a flag's default": func(t *testing.T, me *client) {
			for i, s := range spellings {
				key := fmt.Sprint("k", i)
				check := func(a *answer) {
					t.Helper()
					for what, read := range map[string]*answer{"the answer": a, "the flag": me.call("GET", flagPath(key), nil).want(200)} {
						same(t, what, read.raw("defaultValue"), s.stored)
					}
					list := me.call("GET", "/api/v1/flags?q="+key, nil).want(200)
					if !strings.Contains(string(list.body), `"defaultValue":`+s.stored+`,"description"`) {
						t.Errorf("the list does not show %s: %s", s.stored, list.body)
					}
					same(t, "evaluation", me.evaluate(key, `{}`).want(200).raw("value"), s.stored)
				}
				check(me.call("POST", "/api/v1/flags", fmt.Sprintf(`{"key":%q,"type":%q,"defaultValue":%s}`, key, s.kind, s.value)).want(201))
				if history := me.call("GET", flagPath(key, "/history"), nil).want(200); !strings.Contains(string(history.body), `"defaultValue":{"from":null,"to":`+s.stored+`}`) {
					t.Errorf("the history does not show %s: %s", s.stored, history.body)
				}
				me.call("PATCH", flagPath(key), map[string]any{"defaultValue": other(s.kind)}).want(200)
				check(me.call("PATCH", flagPath(key), fmt.Sprintf(`{"defaultValue":%s}`, s.value)).want(200))
				again := me.call("PATCH", flagPath(key), fmt.Sprintf(`{"defaultValue":%s}`, s.value)).want(200)
				same(t, "the version after the same once more", again.raw("version"), "3")
				if history := me.call("GET", flagPath(key, "/history?limit=1"), nil).want(200); !strings.Contains(string(history.body), `,"to":`+s.stored+`}`) {
					t.Errorf("the history does not show %s: %s", s.stored, history.body)
				}
			}
		},
		"of a variation": func(t *testing.T, me *client) {
			for i, s := range spellings {
				key := fmt.Sprint("k", i)
				me.enabled(key, map[string]any{"type": s.kind})
				check := func(a *answer) {
					t.Helper()
					same(t, "the answer", a.raw("value"), s.stored)
					for _, read := range []*answer{me.call("GET", flagPath(key), nil).want(200), me.call("GET", flagPath(key, "/variations"), nil).want(200)} {
						if !strings.Contains(string(read.body), `"value":`+s.stored+`,"description"`) {
							t.Errorf("%s does not show %s: %s", read.call, s.stored, read.body)
						}
					}
					same(t, "evaluation", me.evaluate(key, `{"targetingKey":"u"}`).want(200).raw("value"), s.stored)
					if history := me.call("GET", flagPath(key, "/history?limit=1"), nil).want(200); !strings.Contains(string(history.body), s.stored) {
						t.Errorf("the history does not show %s: %s", s.stored, history.body)
					}
				}
				a := me.addVariation(key, fmt.Sprintf(`{"name":"v","weight":1,"value":%s}`, s.value))
				check(a)
				path := flagPath(key, "/variations/", strings.Trim(a.raw("id"), `"`))
				me.call("PATCH", path, map[string]any{"value": other(s.kind)}).want(200)
				check(me.call("PATCH", path, fmt.Sprintf(`{"value":%s}`, s.value)).want(200))
				check(me.call("PATCH", path, fmt.Sprintf(`{"value":%s}`, s.value)).want(200))
				same(t, "the version", me.call("GET", flagPath(key), nil).want(200).raw("version"), "5")
				me.call("DELETE", path, nil).want(204)
				if history := me.call("GET", flagPath(key, "/history?limit=1"), nil).want(200); !strings.Contains(string(history.body), `"value":`+s.stored) {
					t.Errorf("the history does not show %s: %s", s.stored, history.body)
				}
			}
		},
		"and another spelling of the same value is a change": func(_ *testing.T, me *client) {
			me.createFlag("k", map[string]any{"type": "number", "defaultValue": 1})
			me.call("PATCH", flagPath("k"), `{"defaultValue":1.0}`).want(200).shows(map[string]any{"version": 2})
			me.call("PATCH", flagPath("k"), `{"defaultValue": 1.0 }`).want(200).shows(map[string]any{"version": 2})
		},
	}.run(t)
}

// other is a value of a flag's type that none of the spellings has.
func other(kind string) any {
	switch kind {
	case "number":
		return 77
	case "string":
		return "other"
	default:
		return []string{"other"}
	}
}
