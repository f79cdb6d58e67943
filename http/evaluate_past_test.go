package http_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/murmur3"

	"flagledger/cmd/flagledger/nodetest"
)

func TestEvaluatingThePast(t *testing.T) { nodetest.BothEngines(t, testEvaluatingThePast) }

func testEvaluatingThePast(t *testing.T) {
	nodetest.Cases{
		"X-Evaluated-At tells the moment": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			at := time.Now().UTC()
			a := me.Call("POST", nodetest.FlagPath("k", "/evaluate", atQuery(at)), `{}`).Want(200)
			nodetest.Same(t, "the time that was asked for", a.Header.Get("X-Evaluated-At"), at.Format(time.RFC3339Nano))
			recorded := me.Call("POST", nodetest.FlagPath("k", "/evaluate?version=1"), `{}`).
				Want(200).
				Shows(map[string]any{"reason": "OFF", "flagVersion": 1}).
				Header.Get("X-Evaluated-At")
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?at="+recorded), `{}`).
				Want(200).
				Shows(map[string]any{"reason": "OFF", "flagVersion": 1})
			nodetest.Same(t, "of now", me.Evaluate("k", `{}`).Want(200).Header.Get("X-Evaluated-At"), "")
		},
		"a machine that asks for the past, or why, or for a preview, needs flags:read too": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			evaluates, reads := me.Machine("flags:evaluate"), me.Machine("flags:evaluate", "flags:read")
			for _, query := range []string{"?version=1", atQuery(time.Now()), "?explain=true", "?preview=true"} {
				evaluates.Call("POST", nodetest.FlagPath("k", "/evaluate", query), `{}`).Refused(403)
				reads.Call("POST", nodetest.FlagPath("k", "/evaluate", query), `{}`).Want(200)
			}
			for _, query := range []string{atQuery(time.Now()), "?preview=true"} {
				evaluates.Call("POST", manyPath+query, `{}`).Refused(403)
				reads.Call("POST", manyPath+query, `{}`).Want(200)
			}
			for _, query := range []string{"", "?preview=false"} {
				evaluates.Call("POST", nodetest.FlagPath("k", "/evaluate", query), `{}`).Want(200)
				evaluates.Call("POST", manyPath+query, `{}`).Want(200)
			}
		},
		"all parameters that are wrong, unknown or repeated are named": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			evaluates := me.Machine("flags:evaluate")
			const good = "2026-01-01T00:00:00Z"
			for _, path := range []string{nodetest.FlagPath("k", "/evaluate"), manyPath} {
				for query, names := range map[string][]string{
					"?versions=1": {"versions"}, "?At=" + good: {"At"}, "?at=zz&explain=zz": {"at", "explain"}, "?at=zz&version=3&x=": {"at", "version", "x"},
					"?at=" + good + "&at=zz": {"at"}, "?explain=true&explain=false": {"explain"}, "?preview=maybe": {"preview"}, "?preview=true&preview=true": {"preview"}, "?preview=zz&at=zz": {"preview", "at"}, "?version=1&version=2": {"version"},
				} {
					evaluates.Call("POST", path+query, `{}`).Refused(422, names...)
				}
				me.Call("POST", path+"?", `{}`).Want(200)
			}
		},
		"a preview answers what the call without it does, also of the past and explained": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			split(me, "split")
			one, body := nodetest.FlagPath("split", "/evaluate"), `{"targetingKey":"u"}`
			at := atQuery(time.Now())
			for _, path := range []string{one, one + "?explain=true", one + "?version=1", one + at, one + at + "&explain=true", manyPath, manyPath + at} {
				preview := "?preview=true"
				if strings.Contains(path, "?") {
					preview = "&preview=true"
				}
				plain, shown := me.Call("POST", path, body).Want(200), me.Call("POST", path+preview, body).Want(200)
				nodetest.Same(t, "a preview of "+path, []any{string(shown.Body), shown.Header.Get("X-Evaluated-At")},
					[]any{string(plain.Body), plain.Header.Get("X-Evaluated-At")})
			}
			named := `{"targetingKey":"u","flagKeys":["split","none"]}`
			nodetest.Same(t, "a preview of named flags", string(me.Call("POST", manyPath+"?preview=true", named).Want(200).Body),
				string(me.Call("POST", manyPath, named).Want(200).Body))
			me.Call("POST", one+"?preview=true", `{}`).Refused(422, "targetingKey")
			me.Call("POST", nodetest.FlagPath("none", "/evaluate?preview=true"), body).Refused(404)
			me.Call("POST", "/api/flags/split/evaluate?preview=maybe", `{"userId":"u"}`).Refused(422, "preview")
		},
		"many flags at a time, changed, deleted and added since": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("changed", nil)
			me.CreateEnabledFlag("deleted", nil)
			me.CreateEnabledFlag("same", nil)
			split(me, "split")
			const body = `{"targetingKey":"u","flagKeys":["same","none","later","deleted","same"]}`
			all, some := me.Call("POST", manyPath, `{"targetingKey":"u"}`).Want(200), me.Call("POST", manyPath, body).Want(200)
			at := time.Now()
			me.Call("POST", nodetest.FlagPath("changed", "/disable"), nil).Want(200)
			me.Call("DELETE", nodetest.FlagPath("deleted"), nil).Want(204)
			me.CreateEnabledFlag("later", nil)
			a := me.Call("POST", manyPath+atQuery(at), `{"targetingKey":"u"}`).Want(200)
			nodetest.Same(t, "all flags", string(a.Body), string(all.Body))
			nodetest.Same(t, "X-Evaluated-At", a.Header.Get("X-Evaluated-At"), at.UTC().Format(time.RFC3339Nano))
			nodetest.Same(t, "the named ones", string(me.Call("POST", manyPath+atQuery(at), body).Want(200).Body),
				string(some.Body))
			me.Call("POST", manyPath+"?version=1", `{}`).Refused(422, "version")
			me.Call("POST", manyPath+"?explain=true", `{}`).Refused(422, "explain")
			me.Call("POST", manyPath+"?at=x", `{}`).Refused(422, "at")
			me.Call("POST", manyPath+atQuery(at), `{"environment":"none"}`).Refused(404)
		},
		"a key or an environment that is no text is one that there was not": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("f", nil)
			at := atQuery(time.Now())
			for _, key := range []string{"%25FF", "%2500"} { // these decode to %FF and %00
				for _, query := range []string{"", at, "?version=1"} {
					me.Call("POST", nodetest.FlagPath(key, "/evaluate")+query, `{"targetingKey":"u"}`).Refused(404)
				}
			}
			for _, call := range []struct{ method, path, body string }{
				{"POST", nodetest.FlagPath("f", "/evaluate") + "?version=1", `{"targetingKey":"u"}`},
				{"POST", "/api/v1/flags/evaluate" + at, `{"targetingKey":"u"}`},
				{"GET", nodetest.FlagPath("f") + at, ""},
				{"GET", "/api/v1/flags" + at, ""},
			} {
				var body any
				if call.body != "" {
					body = call.body
				}
				me.Call(call.method, call.path, body, "X-Environment", "\xff").Refused(404)
			}
		},
		"they count as no evaluations": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?version=2"), `{}`).Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?explain=true"), `{}`).Want(200)
			me.Call("POST", manyPath+atQuery(time.Now()), `{}`).Want(200)
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?preview=true"), `{}`).Want(200)
			me.Call("POST", manyPath+"?preview=true", `{}`).Want(200)
			me.Evaluate("k", `{}`).Want(200)
			usage := func() any {
				return me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/usage", nil).Want(200).Object()["evaluations"]
			}
			me.Service.Eventually("the evaluation is counted", func() bool { return usage() != 0.0 })
			nodetest.Same(t, "the count", usage(), 1)
		},
	}.Run(t)
}

func TestExplaining(t *testing.T) {
	explain := func(me *nodetest.Client, body string) (result, explanation map[string]any) {
		me.Service.T.Helper()
		plain := me.Evaluate("k", body).Want(200)
		a := me.Call("POST", nodetest.FlagPath("k", "/evaluate?explain=true"), body).Want(200)
		result = a.Object()
		explanation = result["explanation"].(map[string]any)
		nodetest.Same(me.Service.T, "the result",
			strings.HasPrefix(string(a.Body), strings.TrimSuffix(string(plain.Body), "}")+`,"explanation":`), true)
		version := fmt.Sprintf("?version=%v&explain=true", result["flagVersion"])
		nodetest.Same(me.Service.T, "by version",
			string(me.Call("POST", nodetest.FlagPath("k", "/evaluate", version), body).Want(200).Body), string(a.Body))
		return result, explanation
	}
	outcomes := func(explanation map[string]any) (list []string) {
		for _, step := range explanation["steps"].([]any) {
			s := step.(map[string]any)
			list = append(list, fmt.Sprintf("%v %v", s["step"], s["outcome"]))
		}
		return list
	}
	nodetest.Cases{
		"the steps of a flag without rules": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			_, off := explain(me, `{}`)
			nodetest.Same(t, "off", outcomes(off), []string{"status active", "environment disabled"})
			nodetest.Same(t, "the split", off["split"], nil)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			_, on := explain(me, `{}`)
			nodetest.Same(t, "on", outcomes(on),
				[]string{"status active", "environment enabled", "fallthrough not_set", "weights no_weights", "default served"})
			me.SetFallthrough("k", `{"serve":{"value":false}}`).Want(200)
			_, set := explain(me, `{}`)
			nodetest.Same(t, "with a fallthrough", outcomes(set),
				[]string{"status active", "environment enabled", "fallthrough served"})
			me.Call("PATCH", nodetest.FlagPath("k"), `{"status":"archived"}`).Want(200)
			_, archived := explain(me, `{}`)
			nodetest.Same(t, "archived", outcomes(archived), []string{"status archived"})
		},
		"rules and their conditions, up to what decides": func(t *testing.T, me *nodetest.Client) {
			a, _ := me.TwoVariations("k")
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			me.SetRules("k", fmt.Sprintf(`{"rules":[
				{"name":"first","conditions":[{"attribute":"plan","op":"in","values":["free"]},{"attribute":"seats","op":"gt","values":[1]}],"serve":{"value":"x"}},
				{"conditions":[{"attribute":"seats","op":"gte","values":[1.50],"negate":true},{"attribute":"none","op":"exists","negate":true},{"attribute":"company.id","op":"in","values":[7]}],"serve":{"variationId":%q}},
				{"conditions":[],"serve":{"value":"y"}}]}`, a)).Want(200)
			_, explanation := explain(me, `{"targetingKey":"u","attributes":{"plan":"pro","seats":1.25,"company":{"id":7.0}}}`)
			nodetest.Same(t, "the steps", outcomes(explanation),
				[]string{"status active", "environment enabled", "rule not_matched", "rule matched"})
			steps := explanation["steps"].([]any)
			first, second := steps[2].(map[string]any), steps[3].(map[string]any)
			nodetest.Members(t, "a step", first, "step", "outcome", "ruleId", "ruleName", "conditions")
			nodetest.Same(t, "their names", []any{first["ruleName"], second["ruleName"]}, []string{"first", ""})
			nodetest.Same(t, "the conditions of the first", first["conditions"], []any{
				map[string]any{
					"attribute": "plan",
					"op":        "in",
					"values":    []string{"free"},
					"negate":    false,
					"actual":    "pro",
					"matched":   false,
				},
			})
			nodetest.Same(t, "those of the second", second["conditions"], []any{
				map[string]any{
					"attribute": "seats",
					"op":        "gte",
					"values":    []float64{1.5},
					"negate":    true,
					"actual":    1.25,
					"matched":   true,
				},
				map[string]any{
					"attribute": "none",
					"op":        "exists",
					"values":    []any{},
					"negate":    true,
					"actual":    nil,
					"matched":   true,
				},
				map[string]any{
					"attribute": "company.id",
					"op":        "in",
					"values":    []int{7},
					"negate":    false,
					"actual":    7,
					"matched":   true,
				},
			})
			nodetest.Same(t, "the rule", second["ruleId"], me.Rules("k").Object()["rules"].([]any)[1].(map[string]any)["id"])
		},
		"how a split chose": func(t *testing.T, me *nodetest.Client) {
			a, b := me.TwoVariations("k")
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			me.SetFallthrough("k", fmt.Sprintf(`{"serve":{"rollout":[{"variationId":%q,"weight":20},{"variationId":%q,"weight":80.5}],"bucketBy":"seats"}}`, a, b)).
				Want(200)
			result, explanation := explain(me, `{"attributes":{"seats":12.50}}`)
			split := explanation["split"].(map[string]any)
			nodetest.Members(t, "a split", split, "unit", "attribute", "salt", "hash", "bucket", "total", "variationId")
			nodetest.Same(t, "unit, attribute and total", []any{split["unit"], split["attribute"], split["total"]},
				[]any{"12.5", "seats", 100_500})
			nodetest.Same(t, "the variation", split["variationId"], result["variationId"])
			nodetest.Same(t, "the bucket", split["bucket"],
				uint64(murmur3.StringSum32(split["salt"].(string)+":12.5"))*100_500>>32)
			nodetest.Same(t, "the hash", uint64(split["hash"].(float64))*100_500>>32, uint64(split["bucket"].(float64)))
			me.Call("POST", nodetest.FlagPath("k", "/evaluate?explain=true"), `{}`).Refused(422, "attributes.seats")
		},
		"an answer with very many conditions stays small": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			rule := `{"conditions":[` + strings.Repeat(`{"attribute":"a","op":"exists"},`, 49) + `{"attribute":"b","op":"exists"}],"serve":{"value":true}}`
			me.SetRules("k", `{"rules":[`+strings.Repeat(rule+",", 99)+rule+`]}`).Want(200)
			a := me.Call("POST", nodetest.FlagPath("k", "/evaluate?explain=true"), `{"attributes":{"a":"`+strings.Repeat(`\"`, 600)+`"}}`).
				Want(200)
			if n := len(a.Body); n < 500_000 || n > 1_500_000 {
				t.Errorf("it has %d bytes", n)
			}
		},
		"a long attribute is cut off": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			me.SetRules("k", `{"rules":[{"conditions":[{"attribute":"a","op":"exists"},{"attribute":"b","op":"exists"}],"serve":{"value":true}}]}`).
				Want(200)
			_, explanation := explain(me,
				fmt.Sprintf(`{"attributes":{"a":%q,"b":[{"z":[1,null,"x"],"y":true}]}}`, strings.Repeat("ä", 1000)))
			conditions := explanation["steps"].([]any)[2].(map[string]any)["conditions"].([]any)
			actual := conditions[0].(map[string]any)["actual"].(string)
			nodetest.Same(t, "the beginning", actual, `"`+strings.Repeat("ä", 499))
			nodetest.Same(t, "a short one", conditions[1].(map[string]any)["actual"],
				[]any{map[string]any{"y": true, "z": []any{1, nil, "x"}}})
		},
	}.Run(t)
}
