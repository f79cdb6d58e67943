package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
)

const manyPath = "/api/v1/flags/evaluate"

// split is a flag whose traffic is split by the targeting key.
func (c *client) split(key string) {
	c.s.t.Helper()
	c.enabled(key, map[string]any{"type": "string", "flag_variations": []any{map[string]any{"name": "all", "value": "v", "weight": 1}}})
}

// order are the members of an object in the order of the text.
func order(t testing.TB, object string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	var names []string
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		var member json.RawMessage
		if err == nil {
			err = d.Decode(&member)
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
	}
	return names
}

func TestEvaluatingManyFlags(t *testing.T) {
	cases{
		"a tenant's flags, by key and in order, each as it is alone": func(t *testing.T, me *client) {
			same(t, "no flags", string(me.call("POST", manyPath, `{}`).want(200).body), `{"flags":{}}`)
			me.split("split")
			me.enabled("on", nil)
			me.createFlag("Off", map[string]any{"type": "number", "defaultValue": 1})
			me.createFlag("archived", map[string]any{"type": "json", "defaultValue": map[string]any{"a": []any{}}})
			me.call("PATCH", flagPath("archived"), `{"status":"archived"}`).want(200)
			me.enabled("deleted", nil)
			me.call("DELETE", flagPath("deleted"), nil).want(204)
			const context = `{"targetingKey":"u","attributes":{"plan":"pro"}}`
			a := me.call("POST", manyPath, context).want(200)
			same(t, "Content-Type", a.header.Get("Content-Type"), "application/json")
			members(t, "the answer", a.object(), "flags")
			keys := []string{"Off", "archived", "on", "split"}
			same(t, "the keys", order(t, a.raw("flags")), keys)
			var flags map[string]json.RawMessage
			if err := json.Unmarshal([]byte(a.raw("flags")), &flags); err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				same(t, key, string(flags[key]), string(me.evaluate(key, context).want(200).body))
			}
			me.createFlag("another", nil)
			same(t, "the keys", order(t, me.call("POST", manyPath, context).want(200).raw("flags")), []string{"Off", "another", "archived", "on", "split"})
		},
		"those that are named": func(t *testing.T, me *client) {
			for _, key := range []string{"a", "b", "c"} {
				me.enabled(key, nil)
			}
			a := me.call("POST", manyPath, `{"flagKeys":["c","a","c"]}`).want(200)
			same(t, "the keys", order(t, a.raw("flags")), []string{"a", "c"})
			members(t, "the answer", a.object(), "flags")
			same(t, "none", string(me.call("POST", manyPath, `{"flagKeys":[]}`).want(200).body), `{"flags":{}}`)
			same(t, "null", order(t, me.call("POST", manyPath, `{"flagKeys":null}`).want(200).raw("flags")), []string{"a", "b", "c"})
		},
		"one that cannot be evaluated does not spoil the others": func(t *testing.T, me *client) {
			me.split("split")
			me.enabled("on", nil)
			missing := map[string]any{"status": 422, "detail": "validation failed", "errors": map[string]any{"targetingKey": "is required: the flag splits its traffic by it"}}
			a := me.call("POST", manyPath, `{}`).want(200)
			same(t, "the keys", order(t, a.raw("flags")), []string{"on"})
			same(t, "errors", a.object()["errors"], map[string]any{"split": missing})
			a = me.call("POST", manyPath, `{"flagKeys":["split","on","none","<é>"]}`).want(200)
			same(t, "the keys", order(t, a.raw("flags")), []string{"on"})
			none := map[string]any{"status": 404, "detail": "no such resource"}
			same(t, "errors", a.object()["errors"], map[string]any{"split": missing, "none": none, "<é>": none})
			same(t, "the keys at fault", order(t, a.raw("errors")), []string{"<é>", "none", "split"})
		},
		"in an environment of the tenant": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			me.call("POST", flagPath("k", "/enable"), nil, "X-Environment", "development").want(200)
			for _, test := range []struct {
				body, header string
				on           bool
			}{{`{}`, "", false}, {`{}`, "development", true}, {`{"environment":"development"}`, "production", true}} {
				a := me.call("POST", manyPath, test.body, "X-Environment", test.header).want(200)
				same(me.s.t, "enabled", a.object()["flags"].(map[string]any)["k"].(map[string]any)["enabled"], test.on)
			}
			me.call("POST", manyPath, `{"environment":"none"}`).refused(404)
		},
		"bad input is refused": func(_ *testing.T, me *client) {
			me.call("POST", manyPath, `{"flagKeys":"k","userId":"u","targetingKey":7}`).refused(422, "flagKeys", "userId", "targetingKey")
			me.call("POST", manyPath, `{"flagKeys":["k",null,5]}`).refused(422, "flagKeys[1]", "flagKeys[2]")
			me.call("POST", manyPath, `{"flagkeys":[]}`).refused(422, "flagkeys")
			me.call("POST", manyPath, map[string]any{"flagKeys": make([]string, 1001)}).refused(422, "flagKeys")
			me.call("POST", manyPath, map[string]any{"flagKeys": make([]string, 1000)}).want(200)
			for _, body := range []string{"null", "[]", `"k"`} {
				me.call("POST", manyPath, body).refused(422, "body")
				me.evaluate("k", body).refused(422, "body")
			}
			me.call("POST", manyPath, `{"flagKeys":["a",]}`).refused(400)
			me.call("POST", manyPath, `{"flagKeys":["a"],"flagKeys":["b"]}`).refused(400)
			me.call("POST", manyPath, `{"attributes":{"a":1,"a":2}}`).refused(400)
			me.call("POST", manyPath, `{} {}`).refused(400)
			me.call("POST", manyPath, ``).refused(400)
			me.call("POST", manyPath, `{}`, "Content-Type", "text/plain").refused(415)
			me.call("GET", manyPath, nil).refused(404) // a flag's key cannot be so
		},
		"the header may choose the tenant": func(t *testing.T, me *client) {
			me.enabled("k", nil)
			same(t, "flags", len(me.call("POST", manyPath, `{}`).want(200).object()["flags"].(map[string]any)), 1)
			same(t, "flags of the first tenant", string(me.call("POST", manyPath, `{}`, "X-Tenant-ID", "").want(200).body), `{"flags":{}}`)
			me.with(me.account().token).call("POST", manyPath, `{}`, "X-Tenant-ID", me.tenant).refused(403)
		},
		"a context that is too large for a flag's rules": func(t *testing.T, me *client) {
			me.enabled("k", nil)
			me.enabled("slow", nil)
			me.setRules("slow", `{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["(?:a?){400}b","(?:a?){400}c"]}],"serve":{"value":false}}]}`).want(200)
			long := strings.Repeat("a", 4096)
			context := map[string]any{"attributes": map[string]any{"a": []string{long, long, long}}}
			me.evaluate("slow", map[string]any{"attributes": map[string]any{"a": long[:1000]}}).want(200)
			me.evaluate("slow", context).refused(422, "attributes")
			a := me.call("POST", manyPath, context).want(200)
			same(t, "the keys", order(t, a.raw("flags")), []string{"k"})
			same(t, "the keys at fault", order(t, a.raw("errors")), []string{"slow"})
			me.ofrep("slow", `{"a":["`+long+`","`+long+`"]}`).failed(400, "slow", "INVALID_CONTEXT")
		},
		"more than is sent at once": func(t *testing.T, me *client) {
			value := strings.Repeat("v", 20_000)
			var keys []string
			for i := range 10 {
				key := fmt.Sprintf("k%d", i)
				me.createFlag(key, map[string]any{"type": "string", "defaultValue": value})
				keys = append(keys, key)
			}
			a := me.call("POST", manyPath, map[string]any{"flagKeys": append(keys[:10:10], "none")}).want(200)
			same(t, "the keys", order(t, a.raw("flags")), keys)
			same(t, "errors", order(t, a.raw("errors")), []string{"none"})
		},
	}.run(t)
}

func TestEvaluatingManyFlagsEndsWithTheCall(t *testing.T) {
	t.Parallel()
	s := newService(t)
	me := s.signUp("me@example.com")
	for i := range 100 {
		key := fmt.Sprintf("slow-%d", i)
		me.enabled(key, nil)
		me.setRules(key, `{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["(?:a?){400}b"]}],"serve":{"value":false}}]}`).want(200)
	}
	long := `"` + strings.Repeat("a", 4096) + `"`
	for path, body := range map[string]string{manyPath: `{"attributes":{"a":` + long + `}}`, ofrepPath: `{"context":{"a":` + long + `}}`} {
		ctx, hangUp := context.WithCancel(t.Context())
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { hangUp() }})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + me.token}, "X-Tenant-Id": {me.tenant}, "Content-Type": {"application/json"}}
		if response, err := http.DefaultClient.Do(r); err == nil {
			_ = response.Body.Close()
			t.Fatalf("%s has been answered with %d", path, response.StatusCode)
		}
		s.eventually("nothing is evaluated", func() bool {
			metrics := string(s.anonymous().call("GET", "/metrics", nil).body)
			return strings.Contains(metrics, `route="`+path+`",status="5xx"} 1`)
		})
	}
}
