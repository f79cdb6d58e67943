package http_test

import (
	"fmt"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestTryingRules(t *testing.T) {
	try := func(me *nodetest.Client, body string, headers ...string) *nodetest.Answer {
		return me.Call("POST", nodetest.FlagPath("k", "/rules/evaluate"), body, headers...)
	}
	const pro = `{"conditions":[{"attribute":"plan","op":"in","values":["pro"]}],"serve":{"value":true}}`
	nodetest.Cases{
		"it answers as once the rules are saved, and saves nothing": func(t *testing.T, me *nodetest.Client) {
			on, off := me.TwoVariations("k")
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			rollout := fmt.Sprintf(`{"rollout":[{"variationId":%q,"weight":20},{"variationId":%q,"weight":80}]}`, on, off)
			rules := fmt.Sprintf(`[{"name":"split","conditions":[{"attribute":"seats","op":"gte","values":[1.50]}],"serve":%s}]`,
				rollout)
			me.SetRules("k", `{"rules":`+rules+`}`).Want(200)
			kept := me.Rules("k").Object()["rules"].([]any)[0].(map[string]any)["id"]
			rules = fmt.Sprintf(
				`[{"conditions":[{"attribute":"plan","op":"in","values":["pro"]}],"serve":{"variationId":%q}},{"id":%q,"name":"split",`+
					`"conditions":[{"attribute":"seats","op":"gte","values":[2]}],"serve":%s}]`,
				off,
				kept,
				rollout,
			)
			serve := fmt.Sprintf(`{"variationId":%q}`, on)
			before := string(me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Body) + string(me.Rules("k").Body)
			context := func(i int) string {
				return fmt.Sprintf(`"targetingKey":"u%d","attributes":{"plan":%q,"seats":%d}`, i, []string{"pro", "free"}[i%2], i%4)
			}
			var tried []map[string]any
			for i := range 20 {
				tried = append(tried,
					try(me, fmt.Sprintf(`{%s,"rules":%s,"fallthrough":%s}`, context(i), rules, serve)).Want(200).Object())
			}
			nodetest.Same(t, "the flag",
				string(me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Body)+string(me.Rules("k").Body), before)
			me.SetRules("k", `{"rules":`+rules+`}`).Want(200)
			me.SetFallthrough("k", `{"serve":`+serve+`}`).Want(200)
			saved := me.Rules("k").Object()["rules"].([]any)[0].(map[string]any)["id"]
			for i, got := range tried {
				want := me.Call("POST", nodetest.FlagPath("k", "/evaluate?explain=true"), `{`+context(i)+`}`).Want(200).Object()
				nodetest.Same(t, "the version", got["flagVersion"].(float64)+2, want["flagVersion"])
				delete(got, "flagVersion")
				delete(want, "flagVersion")
				delete(want, "revision") // a draft has none
				for _, step := range want["explanation"].(map[string]any)["steps"].([]any) {
					if step := step.(map[string]any); step["ruleId"] == saved {
						step["ruleId"] = "rules[0]"
					}
				}
				if want["ruleId"] == saved {
					want["ruleId"] = "rules[0]"
				}
				nodetest.Same(t, context(i), got, want)
			}
		},
		"what is not sent is as the environment has it": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			me.SetRules("k", `{"rules":[`+pro+`]}`).Want(200)
			me.SetFallthrough("k", `{"serve":{"value":false}}`).Want(200)
			for body, reason := range map[string]string{
				`{"attributes":{"plan":"pro"}}`:                            "RULE_MATCH true",
				`{"attributes":{"plan":"pro"},"rules":[]}`:                 "FALLTHROUGH false",
				`{"rules":[],"fallthrough":null}`:                          "FALLTHROUGH true",
				`{"fallthrough":{"value":true}}`:                           "FALLTHROUGH true",
				`{"environment":"development","rules":[` + pro + `]}`:      "OFF false",
				`{"attributes":{"plan":"pro"},"environment":"production"}`: "RULE_MATCH true",
				`{"attributes":{"plan":"free"},"rules":[{"conditions":[{"attribute":"plan","op":"exists"}],"serve":{"value":false}}]}`: "RULE_MATCH false",
			} {
				got := try(me, body).Want(200).Object()
				nodetest.Same(t, body, fmt.Sprintf("%v %v", got["reason"], got["value"]), reason)
			}
			nodetest.Same(t, "of the header's environment",
				try(me, `{}`, "X-Environment", "development").Want(200).Object()["reason"], "OFF")
		},
		"the same draft gives the same answer": func(t *testing.T, me *nodetest.Client) {
			on, off := me.TwoVariations("k")
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Want(200)
			body := fmt.Sprintf(
				`{"targetingKey":"u","rules":[{"conditions":[],"serve":{"rollout":[{"variationId":%q,"weight":1},{"variationId":%q,"weight":1}]}}]}`,
				on, off,
			)
			nodetest.Same(t, "the second answer", string(try(me, body).Want(200).Body), string(try(me, body).Want(200).Body))
		},
		"all that is wrong is told as it is when rules are saved": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			try(
				me,
				`{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["("]}],"serve":{"value":1}},{"id":"none","conditions":[],"serve":{"value":true,"rollout":[]}}],`+
					`"fallthrough":{"variationId":"none"},"targetingKey":1,"more":true}`,
			).
				Refused(422, "rules[0].conditions[0].values[0]", "rules[0].serve.value", "rules[1].id", "rules[1].serve", "rules[1].serve.rollout", "fallthrough.variationId", "targetingKey", "more")
		},
		"it is refused where an evaluation is": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			me.Call("POST", nodetest.FlagPath("none", "/rules/evaluate"), `{}`).Refused(404)
			try(me, `{"environment":"none"}`).Refused(404)
			try(me, ``).Refused(400)
			me.Call("POST", nodetest.FlagPath("k", "/rules/evaluate?at=2026-03-14T15:09:26Z"), `{}`).Refused(422, "at")
			me.Machine("flags:evaluate").Call("POST", nodetest.FlagPath("k", "/rules/evaluate"), `{}`).Refused(403)
			me.Machine("flags:read").Call("POST", nodetest.FlagPath("k", "/rules/evaluate"), `{}`).Refused(403)
			me.Machine("flags:read", "flags:evaluate").Call("POST", nodetest.FlagPath("k", "/rules/evaluate"), `{}`).Want(200)
		},
	}.Run(t)
}
