package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestBodies(t *testing.T) {
	const flags = "/api/v1/flags"
	nodetest.Cases{
		"JSON that is malformed or ambiguous is 400": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			member := `"key":"n","type":"json"`
			for what, body := range map[string]string{
				"nothing":                     "",
				"white space":                 " \n",
				"cut off":                     `{` + member,
				"text after it":               `{` + member + `}x`,
				"an object after it":          `{` + member + `}{}`,
				"a member twice":              `{` + member + `,"key":"m"}`,
				"a member twice, escaped":     `{` + member + `,"k\u0065y":"m"}`,
				"a member twice in a value":   `{` + member + `,"defaultValue":{"a":[{"b":1,"b":2}]}}`,
				"no UTF-8":                    `{` + member + ",\"name\":\"\xff\"}",
				"no UTF-8 in a value":         `{` + member + ",\"defaultValue\":[\"\xc3\"]}",
				"no UTF-8 in a name":          `{` + member + ",\"\xff\":1}",
				"half a surrogate pair":       `{` + member + `,"name":"\ud83d"}`,
				"half a pair in a value":      `{` + member + `,"defaultValue":["\udc00"]}`,
				"NUL":                         `{` + member + `,"name":"a\u0000b"}`,
				"NUL in a value":              `{` + member + `,"defaultValue":["\u0000"]}`,
				"NUL in a name":               `{` + member + `,"defaultValue":{"\u0000":1}}`,
				"NUL after a backslash":       `{` + member + `,"name":"\\\u0000"}`,
				"a raw NUL":                   `{` + member + ",\"name\":\"a\x00b\"}",
				"a raw line break":            `{` + member + ",\"name\":\"a\nb\"}",
				"a comma too many":            `{` + member + `,}`,
				"single quotes":               `{'key':'n'}`,
				"a comment":                   `{` + member + `/**/}`,
				"a byte order mark":           "\ufeff{" + member + "}",
				"a number with leading zero":  `{` + member + `,"defaultValue":01}`,
				"NaN":                         `{` + member + `,"defaultValue":NaN}`,
				"a bad escape":                `{` + member + `,"name":"\x"}`,
				"UTF-16":                      "\xff\xfe{\x00}\x00",
				"65 levels":                   `{` + member + `,"defaultValue":` + nested(64) + `}`,
				"65 levels of objects":        `{` + member + `,"defaultValue":` + strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64) + `}`,
				"100,000 levels":              `{` + member + `,"defaultValue":` + nested(100_000) + `}`,
				"100,000 levels never closed": strings.Repeat("[", 100_000),
			} {
				for _, call := range [][2]string{{"POST", flags}, {"PATCH", nodetest.FlagPath("k")}, {"POST", nodetest.FlagPath("k", "/evaluate")}, {"POST", nodetest.FlagPath("k", "/variations")}, {"POST", "/auth/signin"}} {
					if a := me.Call(call[0], call[1], body); a.Status != 400 {
						t.Errorf("%s: %s answers %d: %s", what, a.Call, a.Status, a.Body)
					} else {
						a.Refused(400)
					}
				}
			}
			nodetest.Same(t, "keys", me.FlagKeys(""), []string{"k"})
			me.CreateFlag("deep", map[string]any{"type": "json"})
			me.Call("PATCH", nodetest.FlagPath("deep"), `{"defaultValue":`+nested(63)+`}`).Want(200)
			me.Evaluate("deep", `{"attributes":{"a":`+nested(62)+`}}`).Want(200)
			me.Evaluate("deep", `{"attributes":{"a":`+nested(63)+`}}`).Refused(400)
			me.Call("POST", flags, `{"key":"brackets","type":"string","defaultValue":"`+strings.Repeat("[", 100)+`\"{{"}`).
				Want(201)
			me.Call("POST", flags, `{"key":"escapes","type":"string","defaultValue":"\\u0000"}`).Want(201)
		},
		"members that do not exist are 422, all of them": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Call("POST", flags, `{"key":"n","KEY":"m","type":"json"}`).Refused(422, "KEY")
			me.Call("POST", flags, `{"Key":"n","Type":"json","TYPE":"json","bogus":1,"":2}`).
				Refused(422, "Key", "Type", "TYPE", "bogus", "", "key", "type")
			me.Call("POST", flags, `{"key":"n","type":"json","flag_variations":[{"Name":"v"},{"name":"w","VALUE":1}]}`).
				Refused(422, "flag_variations[0].Name", "flag_variations[0].name", "flag_variations[0].value", "flag_variations[1].VALUE", "flag_variations[1].value")
			me.Call("PATCH", nodetest.FlagPath("k"), `{"Name":"x","ENABLED":true}`).Refused(422, "Name", "ENABLED")
			me.Call("POST", nodetest.FlagPath("k", "/variations"), `{"name":"v","value":{"any":{"Name":1}},"Weight":1}`).
				Refused(422, "Weight", "value")
			me.Evaluate("k", `{"TARGETINGKEY":"u","bogus":1,"targetingKey":2,"attributes":{"any":3}}`).
				Refused(422, "TARGETINGKEY", "bogus", "targetingKey")
			me.Evaluate("k", `{"attributes":{"any":1,"ANY":2}}`).Want(200)
			me.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Shows(map[string]any{"version": 1})
		},
		"a body of another shape is 422": func(_ *testing.T, me *nodetest.Client) {
			for _, body := range []string{"null", "[]", `"text"`, "1", "true"} {
				me.Call("POST", flags, body).Refused(422, "body")
			}
		},
		"only application/json is taken": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			for i, media := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=utf-8", " application/json ; a=b"} {
				me.Call("POST", flags, fmt.Sprintf(`{"key":"m%d","type":"json"}`, i), "Content-Type", media).Want(201)
				me.Evaluate("k", `{}`, "Content-Type", media).Want(200)
			}
			for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/xml", "application/merge-patch+json", "application/jsonx", "json", "application/json+x", "application/vnd.x+json; a=b"} {
				for _, call := range [][2]string{{"POST", flags}, {"PATCH", nodetest.FlagPath("k")}, {"POST", nodetest.FlagPath("k", "/evaluate")}, {"POST", nodetest.FlagPath("k", "/variations")}, {"POST", "/api/v1/auth/login"}, {"POST", "/auth/signin"}} {
					me.Call(call[0], call[1], `{}`, "Content-Type", media).Refused(415)
				}
			}
		},
		"a body may have 1 MiB": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			padded := func(body string, size int) string { return body + strings.Repeat(" ", size-len(body)) }
			const limit = 1 << 20
			me.Call("POST", flags, padded(`{"key":"fits","type":"json"}`, limit)).Want(201)
			me.Call("POST", flags, padded(`{"key":"large","type":"json"}`, limit+1)).Refused(400)
			me.Call("POST", flags, padded(`{"key":"large","type":"json"}`, 3*limit)).Refused(400)
			me.Evaluate("k", padded(`{}`, limit)).Want(200)
			me.Evaluate("k", padded(`{}`, limit+1)).Refused(400)
			nodetest.Same(t, "keys", me.FlagKeys(""), []string{"fits", "k"})
		},
		"where no body is needed one may have 16 KiB, as forms": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			large := `{}` + strings.Repeat(" ", 16<<10-1)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), large).Refused(400)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), large, "Idempotency-Key", "a").Refused(400)
			form := me.Call("POST", "/api/v1/oauth/token", "grant_type="+large, "Content-Type", "application/x-www-form-urlencoded").
				Want(400)
			nodetest.Same(t, "what is wrong with the form", form.Object()["detail"], "the body is larger than 16 KiB")
			me.Lenient().Call("POST", nodetest.FlagPath("k", "/enable"), large[:16<<10], "Idempotency-Key", "b").Want(200)
		},
		"a value of 64 KiB is kept, a larger one is 409": func(t *testing.T, me *nodetest.Client) {
			value := func(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }
			me.Call("POST", flags, `{"key":"large","type":"string","defaultValue":`+value(1<<16)+`}`).Want(201)
			nodetest.Same(t, "the value", len(me.Evaluate("large", `{}`).Want(200).Raw("value")), 1<<16)
			me.Call("POST", flags, `{"key":"larger","type":"string","defaultValue":`+value(1<<16+1)+`}`).Refused(409)
			me.Call("POST", flags, `{"key":"larger","type":"string","defaultValue":`+value(1<<20-100)+`}`).Refused(409)
			me.Call("GET", nodetest.FlagPath("larger"), nil).Refused(404)
		},
		"long lists are refused as fast as short ones": func(_ *testing.T, me *nodetest.Client) {
			var tags, variations strings.Builder
			for i := range 40_000 {
				fmt.Fprintf(&tags, `,"t%d"`, i)
				variations.WriteString(`,{"value":1}`)
			}
			me.Call("POST", flags, `{"key":"k","type":"json","tags":["t"`+tags.String()+`]}`).Refused(422, "tags")
			if a := me.Call("POST", flags, `{"key":"k","type":"json","flag_variations":[{"value":1}`+variations.String()+`]}`).
				Want(422); len(a.Body) > 100_000 {
				me.Service.T.Errorf("the answer has %d bytes", len(a.Body))
			}
			me.Call("POST", flags, `{"key":"k","type":"json","tags":[""`+strings.Repeat(`,""`, 40_000)+`]}`).
				Refused(422, "tags[0]")
		},
	}.Run(t)
}
