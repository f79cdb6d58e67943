package http_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

const manyPath = "/api/v1/flags/evaluate"

// split creates a flag whose traffic is split by the targeting key.
func split(c *nodetest.Client, key string) {
	c.Service.T.Helper()
	c.CreateEnabledFlag(key,
		map[string]any{"type": "string", "flag_variations": []any{map[string]any{"name": "all", "value": "v", "weight": 1}}})
}

// order returns the members of an object in textual order.
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
	nodetest.Cases{
		"a tenant's flags, by key and in order, each as it is alone": func(t *testing.T, me *nodetest.Client) {
			nodetest.Same(t, "no flags", string(me.Call("POST", manyPath, `{}`).Want(200).Body), `{"flags":{}}`)
			split(me, "split")
			me.CreateEnabledFlag("on", nil)
			me.CreateFlag("Off", map[string]any{"type": "number", "defaultValue": 1})
			me.CreateFlag("archived", map[string]any{"type": "json", "defaultValue": map[string]any{"a": []any{}}})
			me.Call("PATCH", nodetest.FlagPath("archived"), `{"status":"archived"}`).Want(200)
			me.CreateEnabledFlag("deleted", nil)
			me.Call("DELETE", nodetest.FlagPath("deleted"), nil).Want(204)
			const context = `{"targetingKey":"u","attributes":{"plan":"pro"}}`
			a := me.Call("POST", manyPath, context).Want(200)
			nodetest.Same(t, "Content-Type", a.Header.Get("Content-Type"), "application/json")
			nodetest.Members(t, "the answer", a.Object(), "flags")
			keys := []string{"Off", "archived", "on", "split"}
			nodetest.Same(t, "the keys", order(t, a.Raw("flags")), keys)
			var flags map[string]json.RawMessage
			if err := json.Unmarshal([]byte(a.Raw("flags")), &flags); err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				nodetest.Same(t, key, string(flags[key]), string(me.Evaluate(key, context).Want(200).Body))
			}
			me.CreateFlag("another", nil)
			nodetest.Same(t, "the keys", order(t, me.Call("POST", manyPath, context).Want(200).Raw("flags")),
				[]string{"Off", "another", "archived", "on", "split"})
		},
		"those that are named": func(t *testing.T, me *nodetest.Client) {
			for _, key := range []string{"a", "b", "c"} {
				me.CreateEnabledFlag(key, nil)
			}
			a := me.Call("POST", manyPath, `{"flagKeys":["c","a","c"]}`).Want(200)
			nodetest.Same(t, "the keys", order(t, a.Raw("flags")), []string{"a", "c"})
			nodetest.Members(t, "the answer", a.Object(), "flags")
			nodetest.Same(t, "none", string(me.Call("POST", manyPath, `{"flagKeys":[]}`).Want(200).Body), `{"flags":{}}`)
			nodetest.Same(t, "null", order(t, me.Lenient().Call("POST", manyPath, `{"flagKeys":null}`).Want(200).Raw("flags")),
				[]string{"a", "b", "c"})
		},
		"one that cannot be evaluated does not spoil the others": func(t *testing.T, me *nodetest.Client) {
			split(me, "split")
			me.CreateEnabledFlag("on", nil)
			missing := map[string]any{
				"status": 422,
				"detail": "validation failed",
				"errors": map[string]any{"targetingKey": "is required: the flag splits its traffic by it"},
			}
			a := me.Call("POST", manyPath, `{}`).Want(200)
			nodetest.Same(t, "the keys", order(t, a.Raw("flags")), []string{"on"})
			nodetest.Same(t, "errors", a.Object()["errors"], map[string]any{"split": missing})
			a = me.Call("POST", manyPath, `{"flagKeys":["split","on","none","<é>"]}`).Want(200)
			nodetest.Same(t, "the keys", order(t, a.Raw("flags")), []string{"on"})
			none := map[string]any{"status": 404, "detail": "no such resource"}
			nodetest.Same(t, "errors", a.Object()["errors"], map[string]any{"split": missing, "none": none, "<é>": none})
			nodetest.Same(t, "the keys at fault", order(t, a.Raw("errors")), []string{"<é>", "none", "split"})
		},
		"in an environment of the tenant": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			for _, test := range []struct {
				body, header string
				on           bool
			}{{`{}`, "", false}, {`{}`, "development", true}, {`{"environment":"development"}`, "production", true}} {
				a := me.Call("POST", manyPath, test.body, "X-Environment", test.header).Want(200)
				nodetest.Same(me.Service.T, "enabled", a.Object()["flags"].(map[string]any)["k"].(map[string]any)["enabled"],
					test.on)
			}
			me.Call("POST", manyPath, `{"environment":"none"}`).Refused(404)
		},
		"bad input is refused": func(_ *testing.T, me *nodetest.Client) {
			me.Call("POST", manyPath, `{"flagKeys":"k","userId":"u","targetingKey":7}`).
				Refused(422, "flagKeys", "userId", "targetingKey")
			me.Call("POST", manyPath, `{"flagKeys":["k",null,5]}`).Refused(422, "flagKeys[1]", "flagKeys[2]")
			me.Call("POST", manyPath, `{"flagkeys":[]}`).Refused(422, "flagkeys")
			me.Call("POST", manyPath, map[string]any{"flagKeys": make([]string, 1001)}).Refused(422, "flagKeys")
			me.Call("POST", manyPath, map[string]any{"flagKeys": make([]string, 1000)}).Want(200)
			for _, body := range []string{"null", "[]", `"k"`} {
				me.Call("POST", manyPath, body).Refused(422, "body")
				me.Evaluate("k", body).Refused(422, "body")
			}
			me.Call("POST", manyPath, `{"flagKeys":["a",]}`).Refused(400)
			me.Call("POST", manyPath, `{"flagKeys":["a"],"flagKeys":["b"]}`).Refused(400)
			me.Call("POST", manyPath, `{"attributes":{"a":1,"a":2}}`).Refused(400)
			me.Call("POST", manyPath, `{} {}`).Refused(400)
			me.Call("POST", manyPath, ``).Refused(400)
			me.Call("POST", manyPath, `{}`, "Content-Type", "text/plain").Refused(415)
			me.Call("GET", manyPath, nil).Refused(404) // no flag can have this key
		},
		"the header may choose the tenant": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			nodetest.Same(t, "flags", len(me.Call("POST", manyPath, `{}`).Want(200).Object()["flags"].(map[string]any)), 1)
			nodetest.Same(t, "flags of the first tenant",
				string(me.Call("POST", manyPath, `{}`, "X-Tenant-ID", "").Want(200).Body), `{"flags":{}}`)
			withToken(me, newAccount(me).token).Call("POST", manyPath, `{}`, "X-Tenant-ID", me.Tenant).Refused(403)
		},
		"a context that is too large for a flag's rules": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			me.CreateEnabledFlag("slow", nil)
			// searching these texts costs much by the bound, and little time on any machine
			words := make([]string, 1000)
			for i := range words {
				words[i] = fmt.Sprintf("z%d", i)
			}
			me.SetRules("slow", `{"rules":[{"conditions":[{"attribute":"a","op":"contains","values":["`+
				strings.Join(words, `","`)+`"]}],"serve":{"value":false}}]}`).Want(200)
			long := strings.Repeat("a", 8192)
			attributes := `{"a":["` + strings.Repeat(long+`","`, 5) + long + `"]}`
			context := `{"attributes":` + attributes + `}`
			me.Evaluate("slow", map[string]any{"attributes": map[string]any{"a": long[:1000]}}).Want(200)
			me.Evaluate("slow", context).Refused(422, "attributes")
			a := me.Call("POST", manyPath, context).Want(200)
			nodetest.Same(t, "the keys", order(t, a.Raw("flags")), []string{"k"})
			nodetest.Same(t, "the keys at fault", order(t, a.Raw("errors")), []string{"slow"})
			failedWith(callOFREP(me, "slow", attributes), 400, "slow", "INVALID_CONTEXT")
		},
		"more than is sent at once": func(t *testing.T, me *nodetest.Client) {
			value := strings.Repeat("v", 20_000)
			var keys []string
			for i := range 10 {
				key := fmt.Sprintf("k%d", i)
				me.CreateFlag(key, map[string]any{"type": "string", "defaultValue": value})
				keys = append(keys, key)
			}
			a := me.Call("POST", manyPath, map[string]any{"flagKeys": append(keys[:10:10], "none")}).Want(200)
			nodetest.Same(t, "the keys", order(t, a.Raw("flags")), keys)
			nodetest.Same(t, "errors", order(t, a.Raw("errors")), []string{"none"})
		},
	}.Run(t)
}

func TestEvaluatingManyFlagsEndsWithTheCall(t *testing.T) {
	t.Parallel()
	s := nodetest.New(t)
	me := s.SignUp("me@example.com")
	for i := range 50 {
		key := fmt.Sprintf("slow-%d", i)
		me.CreateEnabledFlag(key, nil)
		me.SetRules(key, `{"rules":[{"conditions":[{"attribute":"a","op":"matches","values":["(?:a?){400}b"]}],"serve":{"value":false}}]}`).
			Want(200)
	}
	long := `"` + strings.Repeat("a", 4096) + `"`
	for path, body := range map[string]string{manyPath: `{"attributes":{"a":` + long + `}}`, ofrepPath: `{"context":{"a":` + long + `}}`} {
		ctx, hangUp := context.WithCancel(t.Context())
		ctx = httptrace.WithClientTrace(ctx,
			&httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { hangUp() }})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Authorization": {"Bearer " + me.Token},
			"X-Tenant-Id":   {me.Tenant},
			"Content-Type":  {"application/json"},
		}
		if response, err := http.DefaultClient.Do(r); err == nil {
			_ = response.Body.Close()
			t.Fatalf("%s has been answered with %d", path, response.StatusCode)
		}
		s.Eventually("nothing is evaluated", func() bool {
			metrics := string(s.Anonymous().Call("GET", "/metrics", nil).Body)
			return strings.Contains(metrics, `route="`+path+`",status="5xx"} 1`)
		})
	}
}
