package main

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzBody throws bodies at the calls that take a flag's values. Whatever comes in, the service neither fails nor answers other than in JSON.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		``, ` `, `null`, `[]`, `"`, `{`, `{}`, `{"key":"k","type":"boolean"}`, `{"key":"k","KEY":"l","type":"json","defaultValue":{"a":[1e999,"\u0000",null]}}`,
		`{"key":"k","type":"number","defaultValue":9007199254740993,"tags":["a","a",""],"flag_variations":[{"name":"v","value":1.0,"weight":1e-3},{"name":"v","value":-0,"weight":"1"}]}`,
		`{"key":"k","type":"string","defaultValue":"\ud83d\ude80\/\u2028","name":null,"description":null,"tags":null,"projectId":null,"flag_variations":null}`,
		`{"targetingKey":"u","attributes":{"a":{"b":[true,{"c":1e400}]}},"environment":"production"}`, `{"name":"v","value":{"":""},"description":"d","weight":12.5}`,
		`{"name":"n","defaultValue":0,"tags":["b"],"status":"archived","enabled":true}`, `{"status":"gone","name":""}`, "{\"name\":\"\xff\"}", strings.Repeat("[", 70), strings.Repeat(`{"a":`, 70),
	} {
		f.Add([]byte(body))
	}
	me := newService(f).signUp("me@example.com")
	me.enabled("k", map[string]any{"type": "json"})
	variation := strings.Trim(me.addVariation("k", `{"name":"first","value":1,"weight":1}`).raw("id"), `"`)
	calls := [][2]string{
		{"POST", "/api/v1/flags"}, {"POST", flagPath("k", "/evaluate")}, {"PATCH", flagPath("k")}, {"POST", flagPath("k", "/variations")}, {"PATCH", flagPath("k", "/variations/", variation)},
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, call := range calls {
			r := httptest.NewRequestWithContext(t.Context(), call[0], call[1], strings.NewReader(string(body)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+me.token)
			r.Header.Set("X-Tenant-ID", me.tenant)
			w := httptest.NewRecorder()
			me.s.node.api.ServeHTTP(w, r)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %s with %q: %d %s", call[0], call[1], body, w.Code, w.Body)
			}
		}
	})
}
