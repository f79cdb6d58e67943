package http_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// FuzzBody sends bodies to the calls that take a flag's values or a context. The service never fails and always answers
// in JSON.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		``, ` `, `null`, `[]`, `"`, `{`, `{}`, `{"key":"k","type":"boolean"}`, `{"key":"k","KEY":"l","type":"json","defaultValue":{"a":[1e999,"\u0000",null]}}`,
		`{"key":"k","type":"number","defaultValue":9007199254740993,"tags":["a","a",""],"flag_variations":[{"name":"v","value":1.0,"weight":1e-3},{"name":"v","value":-0,"weight":"1"}]}`,
		`{"key":"k","type":"string","defaultValue":"\ud83d\ude80\/\u2028","name":null,"description":null,"tags":null,"projectId":null,"flag_variations":null}`,
		`{"targetingKey":"u","attributes":{"a":{"b":[true,{"c":1e400}]}},"environment":"production"}`, `{"flagKeys":["k","","none",null],"userId":"u"}`, `{"context":{"targetingKey":"u","a":[1e999,{"":null}]},"x":{}}`, `{"context":null}`, `{"name":"v","value":{"":""},"description":"d","weight":12.5}`,
		`{"name":"n","defaultValue":0,"tags":["b"],"status":"archived","enabled":true}`, `{"status":"gone","name":""}`, "{\"name\":\"\xff\"}", strings.Repeat("[", 70), strings.Repeat(`{"a":`, 70),
	} {
		f.Add([]byte(body))
	}
	me := nodetest.New(f).SignUp("me@example.com")
	me.CreateEnabledFlag("k", map[string]any{"type": "json"})
	variation := strings.Trim(me.AddVariation("k", `{"name":"first","value":1,"weight":1}`).Raw("id"), `"`)
	calls := [][2]string{
		{
			"POST",
			nodetest.FlagPath("k", "/evaluate"),
		},
		{"POST", "/api/flags/k/evaluate"},
		{"POST", "/api/v1/flags/evaluate"},
		{"POST", "/ofrep/v1/evaluate/flags/k"},
		{"POST", "/ofrep/v1/evaluate/flags"},
		{
			"POST",
			"/api/v1/flags",
		},
		{"PATCH", nodetest.FlagPath("k")},
		{"POST", nodetest.FlagPath("k", "/variations")},
		{"PATCH", nodetest.FlagPath("k", "/variations/", variation)},
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, call := range calls {
			r := httptest.NewRequestWithContext(t.Context(), call[0], call[1], strings.NewReader(string(body)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+me.Token)
			r.Header.Set("X-Tenant-ID", me.Tenant)
			w := httptest.NewRecorder()
			me.Service.Node.API.ServeHTTP(w, r)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %s with %q: %d %s", call[0], call[1], body, w.Code, w.Body)
			}
		}
	})
}

// FuzzRules sends bodies to the calls that set rules and a fallthrough. VARIATION stands for a variation of the JSON
// flag. Accepted rules are shown and evaluated, and change nothing when they are sent back as shown.
func FuzzRules(f *testing.F) {
	for _, body := range []string{
		``, `null`, `[]`, `{}`, `{"rules":null}`, `{"rules":[]}`, `{"rules":{}}`, `{"rules":[null]}`, `{"rules":[{}]}`, `{"serve":null}`, `{"serve":{}}`, `{"serve":[]}`, `{"serve":{"value":null}}`,
		`{"rules":[` + everyOperator + `],"fallthrough":null}`, `{"rules":[` + everyOperator + `,` + everyOperator + `]}`, `{"rules":[{"conditions":[],"serve":{"value":{"a":[1.50,null]," b":-0}}}]}`,
		`{"rules":[{"id":null,"name":"\ud83d\ude80","conditions":[{"attribute":"a","op":"in","values":["\u2028","<",1e-999,-0.0,true]}],"serve":{"variationId":"VARIATION","value":null}}]}`,
		`{"rules":[{"conditions":[],"serve":{"rollout":[{"variationId":"VARIATION","weight":1e-3}],"bucketBy":"a.b"}},{"conditions":[],"serve":{"rollout":[{"variationId":"VARIATION","weight":0}]}}]}`,
		`{"serve":{"rollout":[{"variationId":"VARIATION","weight":33.333}],"bucketBy":null}}`, `{"serve":{"variationId":"VARIATION","rollout":[]}}`, `{"serve":{"rollout":[{"variationId":null,"weight":"1"}]}}`,
		`{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["(?i)^\\pL{1,3}[^\\x00-\\x7f]$","(","(a{999}){999}","\\C"]}],"serve":{"value":1}}]}`,
		`{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["(?s).*?(a|b)*+\\b$","(?P<n>x){0}","[[:^alpha:]]"]},{"attribute":"..","op":"gt","values":[1e999]}],"serve":{"value":1}}]}`,
		`{"rules":[{"conditions":[{"attribute":"a","op":"semver_gt","values":["1.0.0-0.a.-","01.0.0"]},{"attribute":"a","op":"after","values":["2026-02-30T00:00:00Z",1]}],"serve":{"value":1}}]}`,
		`{"rules":[{"conditions":null,"serve":null}],"rules":[]}`, `{"rules":[{"conditions":[{"values":"x","negate":"true"}],"serve":{"value":1,"x":2}}]}`, "{\"rules\":[{\"name\":\"\xff\"}]}",
		`{"serve":{"value":"\ud800"}}`, `{"serve":{"value":` + strings.Repeat(`[`, 61) + strings.Repeat(`]`, 61) + `}}`,
	} {
		f.Add([]byte(body))
	}
	me := nodetest.New(f).SignUp("me@example.com")
	call := func(t *testing.T, method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+me.Token)
		r.Header.Set("X-Tenant-ID", me.Tenant)
		w := httptest.NewRecorder()
		me.Service.Node.API.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code == 429 || !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %s with %q: %d %s", method, path, body, w.Code, w.Body)
		}
		return w
	}
	key, variation, flags := "", "", 0
	f.Fuzz(func(t *testing.T, body []byte) {
		if key == "" { // the last one has rules
			flags++
			key = fmt.Sprintf("k%d", flags)
			call(t, "POST", "/api/v1/flags", `{"key":"`+key+`","type":"json","flag_variations":[{"name":"v","value":1}]}`)
			call(t, "POST", nodetest.FlagPath(key, "/enable"), "")
			var flag struct{ Variations []struct{ ID string } }
			if err := json.Unmarshal(call(t, "GET", nodetest.FlagPath(key), "").Body.Bytes(), &flag); err != nil {
				t.Fatal(err)
			}
			variation = flag.Variations[0].ID
		}
		sent := strings.ReplaceAll(string(body), "VARIATION", variation)
		call(t, "POST", nodetest.FlagPath(key, "/rules/evaluate"), sent)
		for _, path := range []string{nodetest.FlagPath(key, "/rules"), nodetest.FlagPath(key, "/fallthrough")} {
			set := call(t, "PUT", path, sent)
			if set.Code != 200 {
				continue
			}
			version := set.Header().Get("ETag")
			read := call(t, "GET", nodetest.FlagPath(key, "/rules"), "")
			repeated := call(t, "PUT", nodetest.FlagPath(key, "/rules"), read.Body.String())
			if read.Header().Get("ETag") != version || repeated.Code != 200 || repeated.Header().Get("ETag") != version ||
				repeated.Body.String() != read.Body.String() {
				t.Errorf("%q is shown as %s at %s, and once more as %d %s at %s", sent, read.Body, version, repeated.Code,
					repeated.Body, repeated.Header().Get("ETag"))
			}
			evaluated := call(t, "POST", nodetest.FlagPath(key, "/evaluate"),
				`{"targetingKey":"u","attributes":{"a":"1.2.3","plan":["x",1],"b":{"c":"2026-03-14T15:09:26Z"}}}`)
			if compiled := `"flagVersion":` + strings.Trim(version, `"`) + `,`; evaluated.Code != 422 &&
				!strings.Contains(evaluated.Body.String(), compiled) {
				t.Errorf("%q evaluates at another version than %s: %d %s", sent, version, evaluated.Code, evaluated.Body)
			}
			key = ""
		}
	})
}
