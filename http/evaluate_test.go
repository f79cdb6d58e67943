package http_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

func TestEvaluationFollowsSteps(t *testing.T) {
	nodetest.Cases{
		"a result has exactly these members": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			a := me.Evaluate("k", `{"targetingKey":"u","attributes":{"plan":"pro","deep":{"a":[1,null,1e5]}},"environment":"production"}`).
				Want(200)
			nodetest.Members(t, "a result", a.Object(), "enabled", "value", "reason", "variationId", "variationName", "ruleId",
				"flagVersion", "revision")
			a.Shows(
				map[string]any{
					"enabled":       true,
					"value":         true,
					"reason":        "FALLTHROUGH",
					"variationId":   nil,
					"variationName": nil,
					"ruleId":        nil,
					"flagVersion":   2,
				},
			)
			nodetest.Same(t, "Content-Type", a.Header.Get("Content-Type"), "application/json")
		},
		"step 1: no such flag": func(_ *testing.T, me *nodetest.Client) {
			me.Evaluate("none", `{}`).Refused(404)
			me.CreateEnabledFlag("k", nil)
			me.Call("DELETE", nodetest.FlagPath("k"), nil).Want(204)
			me.Evaluate("k", `{}`).Refused(404)
		},
		"step 2: an archived flag serves its default, enabled or not": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"defaultValue": true})
			for _, action := range []string{"/enable", "/disable"} {
				me.Call("POST", nodetest.FlagPath("k", action), nil).Want(200)
				me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"archived"}`).Want(200)
				me.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"enabled": false, "value": true, "reason": "ARCHIVED"})
				me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"active"}`).Want(200)
			}
		},
		"step 3: an inactive flag, or one disabled in the environment, serves its default": func(_ *testing.T, me *nodetest.Client) {
			off := map[string]any{"enabled": false, "value": "off", "reason": "OFF", "variationId": nil, "variationName": nil}
			me.CreateFlag(
				"k",
				map[string]any{
					"type":            "string",
					"defaultValue":    "off",
					"flag_variations": []any{map[string]any{"name": "v", "value": "on", "weight": 1}},
				},
			)
			me.Evaluate("k", `{"targetingKey":"u"}`).Want(200).Shows(off)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			me.Evaluate("k", `{"targetingKey":"u"}`).Want(200).Shows(off)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			me.Evaluate("k", `{"targetingKey":"u"}`).Want(200).Shows(map[string]any{"enabled": true, "value": "on"})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"inactive"}`).Want(200)
			me.Evaluate("k", `{"targetingKey":"u"}`).Want(200).Shows(off)
			me.Evaluate("k", `{}`).Want(200).Shows(off)
		},
		"step 6: weights split the traffic, the same unit always alike": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", map[string]any{"type": "string", "defaultValue": "default", "flag_variations": []any{
				map[string]any{
					"name":  "never",
					"value": "n",
				},
				map[string]any{"name": "a", "value": "A", "weight": 1},
				map[string]any{"name": "b", "value": "B", "weight": 3},
			}})
			ids := map[string]string{}
			for _, v := range me.Variations("k") {
				ids[v["name"].(string)] = v["id"].(string)
			}
			const units = 200
			served := map[int]string{}
			split := func() map[string]int {
				count := map[string]int{}
				for i := range units {
					body := me.Evaluate("k", fmt.Sprintf(`{"targetingKey":"user-%d"}`, i)).
						Want(200).
						Shows(map[string]any{"enabled": true, "reason": "FALLTHROUGH"}).
						Object()
					name := body["variationName"].(string)
					nodetest.Same(t, "the variation", []any{body["variationId"], body["value"]},
						[]string{ids[name], strings.ToUpper(name)})
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
			nodetest.Same(t, "the split again", fmt.Sprint(served), before)
			me.Call("PATCH", nodetest.FlagPath("k", "/variations/", ids["a"]), `{"weight":3}`).Want(200)
			if count := split(); count["never"] > 0 || count["a"] < 65 || count["a"] > 135 {
				t.Errorf("the split of 3 to 3 is %v", count)
			}
		},
		"step 6: a split needs a targetingKey": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k",
				map[string]any{"flag_variations": []any{map[string]any{"name": "v", "value": false, "weight": 0.001}}})
			me.Evaluate("k", `{}`).Refused(422, "targetingKey")
			me.Evaluate("k", `{"targetingKey":"","attributes":{"targetingKey":"u"}}`).Refused(422, "targetingKey")
			me.Evaluate("k", `{"targetingKey":"u"}`).
				Want(200).
				Shows(map[string]any{"value": false, "variationName": "v", "enabled": true})
			me.Evaluate("k", map[string]string{"targetingKey": strings.Repeat("long", 10_000)}).Want(200)
			me.Evaluate("k", `{"targetingKey":"日本\n🚀"}`).Want(200)
		},
		"step 7: a boolean flag serves true": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", map[string]any{"flag_variations": []any{map[string]any{"name": "v", "value": false}}})
			me.Evaluate("k", `{}`).
				Want(200).
				Shows(map[string]any{"value": true, "enabled": true, "reason": "FALLTHROUGH", "variationId": nil})
		},
		"step 8: any other serves its default": func(_ *testing.T, me *nodetest.Client) {
			for kind, value := range map[string]any{"string": "s", "number": 1.5, "json": map[string]any{"a": []any{nil}}} {
				me.CreateEnabledFlag(
					kind,
					map[string]any{
						"type":            kind,
						"defaultValue":    value,
						"flag_variations": []any{map[string]any{"name": "v", "value": value}},
					},
				)
				me.Evaluate(kind, `{}`).
					Want(200).
					Shows(map[string]any{"value": value, "enabled": true, "reason": "FALLTHROUGH", "variationId": nil})
			}
		},
		"every change is served right after its answer": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"type": "number", "defaultValue": 0})
			for i := 1; i <= 20; i++ {
				me.Call("PATCH", nodetest.FlagPath("k"), map[string]int{"defaultValue": i}).Want(200)
				me.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"value": i, "reason": "OFF", "flagVersion": 3*i - 1})
				me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
				me.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"value": i, "enabled": true, "flagVersion": 3 * i})
				me.Call("POST", nodetest.FlagPath("k", "/disable"), nil).Want(200)
				me.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"enabled": false, "flagVersion": 3*i + 1})
			}
		},
	}.Run(t)
}

func TestEvaluationReadsItsRequest(t *testing.T) {
	nodetest.Cases{
		"the body's environment goes before X-Environment, and that before production": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			for _, test := range []struct {
				body, header string
				on           bool
			}{
				{`{}`, "", false}, {`{}`, "development", true}, {`{"environment":""}`, "development", true}, {`{"environment":"development"}`, "", true},
				{`{"environment":"production"}`, "development", false}, {`{"environment":"development"}`, "production", true}, {`{"environment":"development"}`, "none", true},
			} {
				me.Evaluate("k", test.body, "X-Environment", test.header).Want(200).Shows(map[string]any{"enabled": test.on})
			}
			me.Evaluate("k", `{"environment":"none"}`).Refused(404)
			me.Evaluate("k", `{"environment":"none"}`, "X-Environment", "development").Refused(404)
		},
		"attributes reach the rules as they were sent": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", map[string]any{"type": "string", "defaultValue": "rest"})
			me.SetRules("k", `{"rules":[
				{"conditions":[{"attribute":"n","op":"gt","values":[9007199254740992]}],"serve":{"value":"number"}},
				{"conditions":[{"attribute":"company.plan","op":"in","values":["pro \u00e9","team"]}],"serve":{"value":"nested"}},
				{"conditions":[{"attribute":"tags","op":"in","values":[true]}],"serve":{"value":"boolean"}},
				{"conditions":[{"attribute":"targetingKey","op":"ends_with","values":["@example.com"]}],"serve":{"value":"key"}},
				{"conditions":[{"attribute":"nothing","op":"exists"}],"serve":{"value":"null"}}]}`).Want(200)
			for body, value := range map[string]string{
				`{"attributes":{"n":9007199254740993}}`: "number", `{"attributes":{"n":9007199254740992}}`: "rest", `{"attributes":{"n":9007199254740992.0000001}}`: "number", `{"attributes":{"n":1e999}}`: "number",
				`{"attributes":{"n":"9007199254740993"}}`: "rest", `{"attributes":{"company":{"plan":"pro é"}}}`: "nested", `{"attributes":{"company":{"plan":["x","team"]}}}`: "nested", `{"attributes":{"Company":{"plan":"team"}}}`: "rest",
				`{"attributes":{"tags":["a",{"b":1},true]}}`: "boolean", `{"attributes":{"tags":"true"}}`: "rest", `{"targetingKey":"u@example.com"}`: "key", `{"attributes":{"targetingKey":"u@example.com"}}`: "rest",
				`{"targetingKey":null,"attributes":null}`: "rest",
			} {
				me.Lenient().Evaluate("k", body).Want(200).Shows(map[string]any{"value": value})
			}
		},
		"a split by an attribute needs that one, and names it": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", map[string]any{"flag_variations": []any{map[string]any{"name": "v", "value": false}}})
			rollout := func(by string) string {
				return fmt.Sprintf(`{"serve":{"rollout":[{"variationId":%q,"weight":1}],"bucketBy":%q}}`,
					me.Variations("k")[0]["id"], by)
			}
			me.SetFallthrough("k", rollout("company.id")).Want(200)
			for _, body := range []string{`{"targetingKey":"u"}`, `{"attributes":{"company":{"id":""}}}`, `{"attributes":{"company":{"id":null}}}`, `{"attributes":{"company":"c"}}`} {
				me.Evaluate("k", body).Refused(422, "attributes.company.id")
			}
			me.Evaluate("k", `{"attributes":{"company":{"id":"c"}}}`).
				Want(200).
				Shows(map[string]any{"value": false, "variationName": "v"})
			failure := me.Call("POST", manyPath, `{}`).Want(200).Object()["errors"].(map[string]any)["k"].(map[string]any)
			nodetest.Members(me.Service.T, "errors", failure["errors"], "attributes.company.id")
			failedWith(callOFREP(me, "k", `{"targetingKey":"u"}`), 400, "k", "INVALID_CONTEXT")
			me.SetFallthrough("k", rollout("targetingKey")).Want(200)
			me.Evaluate("k", `{"attributes":{"targetingKey":"u"}}`).Refused(422, "targetingKey")
		},
		"bad input is refused": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			for body, field := range map[string]string{
				`{"targetingKey":5}`: "targetingKey", `{"attributes":[]}`: "attributes", `{"environment":{}}`: "environment", `{"userId":"u"}`: "userId", `{"TargetingKey":"u"}`: "TargetingKey",
			} {
				me.Evaluate("k", body).Refused(422, field)
			}
			me.Evaluate("k", nil).Refused(400)
			me.Evaluate("k", ``).Refused(400)
			me.Evaluate("k", `[]`).Want(422)
			me.Evaluate("k", `{}`, "Content-Type", "text/plain").Refused(415)
			me.Evaluate("k", `{"attributes":{"small":-1e-999,"long":123456789012345678901234567890}}`).Want(200)
		},
		"a tenant's flags are evaluated for its members alone": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			viewer := me.Join("viewer")
			viewer.Evaluate("k", `{}`).Want(200).Shows(map[string]any{"value": true})
			viewer.Evaluate("k", `{}`, "X-Tenant-ID", "").Refused(400)
			stranger := withToken(me, newAccount(me).token)
			sameProblem(t, stranger.Evaluate("k", `{}`, "X-Tenant-ID", me.Tenant).Refused(403),
				stranger.Evaluate("k", `{}`, "X-Tenant-ID", uuid.NewString()).Refused(403))
			withToken(me, "").Evaluate("k", `{}`, "X-Tenant-ID", me.Tenant).Refused(401)
		},
	}.Run(t)
}

func TestValuesKeepTheirSpelling(t *testing.T) { nodetest.BothEngines(t, testValuesKeepTheirSpelling) }

func testValuesKeepTheirSpelling(t *testing.T) {
	type spelling struct{ kind, value, stored string }
	exact := func(kind, value string) spelling { return spelling{kind, value, value} }
	spellings := []spelling{
		exact("number", "9007199254740993"),
		exact("number", "1.0"),
		exact("number", "-0"),
		exact("number", "-0.0"),
		exact("number", "1E+2"),
		exact("number", "0.10"),
		exact("number", "1e-400"),
		exact("number", "123456789012345678901234567890.123456789012345678901234567890"),
		exact("string", `"\u00e9"`),
		exact("string", `"é"`),
		exact("string", `"\/<>&"`),
		exact("string", `"\ud83d\ude80"`),
		exact("string", `"\u2028"`),
		exact("string", "\"\u2028\""),
		exact("string", `"\u003c\t\u0009"`),
		exact("string", `"\\u0000"`),
		exact("json", `{"b":1.0,"a":9007199254740993,"\u00e9":[1e2,"\u00e9",null,true]}`),
		exact("json", `[]`),
		exact("json", `null`),
		exact("json", `1.0e308`),
		exact("json", `{"a":[-1e-999]}`),
		exact("json", `"text"`),
		exact("json", `{"":{"":""}}`),
		exact("json", strings.Repeat("[", 61)+strings.Repeat("]", 61)),
		{"json", " {\n\t\"a\" :\r[ 1 , 2 ] } ", `{"a":[1,2]}`},
		{"string", `  " a  b "`, `" a  b "`},
	}
	nodetest.Cases{
		"of a flag's default": func(t *testing.T, me *nodetest.Client) {
			for i, s := range spellings {
				key := fmt.Sprint("k", i)
				check := func(a *nodetest.Answer) {
					t.Helper()
					for what, read := range map[string]*nodetest.Answer{"the answer": a, "the flag": me.Call("GET", nodetest.FlagPath(key), nil).Want(200)} {
						nodetest.Same(t, what, read.Raw("defaultValue"), s.stored)
					}
					list := me.Call("GET", "/api/v1/flags?q="+key, nil).Want(200)
					if !strings.Contains(string(list.Body), `"defaultValue":`+s.stored+`,"description"`) {
						t.Errorf("the list does not show %s: %s", s.stored, list.Body)
					}
					nodetest.Same(t, "evaluation", me.Evaluate(key, `{}`).Want(200).Raw("value"), s.stored)
				}
				check(
					me.Call("POST", "/api/v1/flags", fmt.Sprintf(`{"key":%q,"type":%q,"defaultValue":%s}`, key, s.kind, s.value)).
						Want(201),
				)
				if history := me.Call("GET", nodetest.FlagPath(key, "/history"), nil).
					Want(200); !strings.Contains(string(history.Body), `"defaultValue":{"from":null,"to":`+s.stored+`}`) {
					t.Errorf("the history does not show %s: %s", s.stored, history.Body)
				}
				me.Call("PATCH", nodetest.FlagPath(key), map[string]any{"defaultValue": other(s.kind)}).Want(200)
				check(me.Call("PATCH", nodetest.FlagPath(key), fmt.Sprintf(`{"defaultValue":%s}`, s.value)).Want(200))
				repeated := me.Call("PATCH", nodetest.FlagPath(key), fmt.Sprintf(`{"defaultValue":%s}`, s.value)).Want(200)
				nodetest.Same(t, "the version after the same once more", repeated.Raw("version"), "3")
				if history := me.Call("GET", nodetest.FlagPath(key, "/history?limit=1"), nil).
					Want(200); !strings.Contains(string(history.Body), `,"to":`+s.stored+`}`) {
					t.Errorf("the history does not show %s: %s", s.stored, history.Body)
				}
			}
		},
		"of a variation": func(t *testing.T, me *nodetest.Client) {
			for i, s := range spellings {
				key := fmt.Sprint("k", i)
				me.CreateEnabledFlag(key, map[string]any{"type": s.kind})
				check := func(a *nodetest.Answer) {
					t.Helper()
					nodetest.Same(t, "the answer", a.Raw("value"), s.stored)
					for _, read := range []*nodetest.Answer{me.Call("GET", nodetest.FlagPath(key), nil).Want(200), me.Call("GET", nodetest.FlagPath(key, "/variations"), nil).Want(200)} {
						if !strings.Contains(string(read.Body), `"value":`+s.stored+`,"description"`) {
							t.Errorf("%s does not show %s: %s", read.Call, s.stored, read.Body)
						}
					}
					nodetest.Same(t, "evaluation", me.Evaluate(key, `{"targetingKey":"u"}`).Want(200).Raw("value"), s.stored)
					if history := me.Call("GET", nodetest.FlagPath(key, "/history?limit=1"), nil).
						Want(200); !strings.Contains(string(history.Body), s.stored) {
						t.Errorf("the history does not show %s: %s", s.stored, history.Body)
					}
				}
				a := me.AddVariation(key, fmt.Sprintf(`{"name":"v","weight":1,"value":%s}`, s.value))
				check(a)
				path := nodetest.FlagPath(key, "/variations/", strings.Trim(a.Raw("id"), `"`))
				me.Call("PATCH", path, map[string]any{"value": other(s.kind)}).Want(200)
				check(me.Call("PATCH", path, fmt.Sprintf(`{"value":%s}`, s.value)).Want(200))
				check(me.Call("PATCH", path, fmt.Sprintf(`{"value":%s}`, s.value)).Want(200))
				nodetest.Same(t, "the version", me.Call("GET", nodetest.FlagPath(key), nil).Want(200).Raw("version"), "5")
				me.Call("DELETE", path, nil).Want(204)
				if history := me.Call("GET", nodetest.FlagPath(key, "/history?limit=1"), nil).
					Want(200); !strings.Contains(string(history.Body), `"value":`+s.stored) {
					t.Errorf("the history does not show %s: %s", s.stored, history.Body)
				}
			}
		},
		"and another spelling of the same value is a change": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"type": "number", "defaultValue": 1})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"defaultValue":1.0}`).Want(200).Shows(map[string]any{"version": 2})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"defaultValue": 1.0 }`).Want(200).Shows(map[string]any{"version": 2})
		},
	}.Run(t)
}

// other returns a value of a flag's type that differs from all spellings.
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
