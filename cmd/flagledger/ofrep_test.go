package main

import (
	"net/http"
	"strings"
	"testing"
)

const ofrepPath = "/ofrep/v1/evaluate/flags"

// ofrep evaluates a flag as OpenFeature's clients do, or all flags where the key is empty.
func (c *client) ofrep(key, context string, headers ...string) *answer {
	c.s.t.Helper()
	path := ofrepPath
	if key != "" {
		path += "/" + key
	}
	return c.call("POST", path, `{"context":`+context+`}`, headers...)
}

// failed checks that an answer is a problem, and an error of the protocol.
func (a *answer) failed(status int, key, code string) *answer {
	a.t.Helper()
	a.refused(status)
	a.shows(map[string]any{"errorCode": code})
	body := a.object()
	if body["errorDetails"] == "" || body["errorDetails"] != body["detail"] {
		a.t.Errorf("%s: the errorDetails are not the detail: %s", a.call, a.body)
	}
	if sent, named := body["key"]; named != (key != "") || named && sent != key {
		a.t.Errorf("%s: the key is not %q: %s", a.call, key, a.body)
	}
	return a
}

func TestOFREP(t *testing.T) {
	cases{
		"an answer has exactly these members": func(t *testing.T, me *client) {
			me.enabled("k", nil)
			a := me.ofrep("k", `{"targetingKey":"u","plan":"pro","deep":{"a":[1,null,1e5]}}`).want(200)
			same(t, "Content-Type", a.header.Get("Content-Type"), "application/json")
			same(t, "the answer", a.object(), map[string]any{"key": "k", "value": true, "reason": "STATIC", "metadata": map[string]any{"flagVersion": 2}})
			me.split("split")
			id := me.variations("split")[0]["id"]
			same(t, "the answer", me.ofrep("split", `{"targetingKey":"u"}`).want(200).object(), map[string]any{
				"key": "split", "value": "v", "reason": "SPLIT", "variant": "all", "metadata": map[string]any{"flagVersion": 2, "variationId": id},
			})
		},
		"a flag that is off is DISABLED, with its value": func(t *testing.T, me *client) {
			me.createFlag("k", map[string]any{"type": "json", "defaultValue": map[string]any{"a": 1.50}})
			same(t, "the answer", me.ofrep("k", `{}`).want(200).object(), map[string]any{"key": "k", "value": map[string]any{"a": 1.5}, "reason": "DISABLED", "metadata": map[string]any{"flagVersion": 1}})
		},
		"values keep their spelling": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			me.call("POST", "/api/v1/flags", `{"key":"n","type":"number","defaultValue":9007199254740993.0}`).want(201)
			same(t, "the value", me.ofrep("n", `{}`).want(200).raw("value"), "9007199254740993.0")
		},
		"flags that do not exist are FLAG_NOT_FOUND, archived ones too": func(_ *testing.T, me *client) {
			me.ofrep("none", `{}`).failed(404, "none", "FLAG_NOT_FOUND")
			me.ofrep("a%2Fb%40%C3%A9", `{}`).failed(404, "a/b@é", "FLAG_NOT_FOUND")
			me.enabled("archived", nil)
			me.call("PATCH", flagPath("archived"), `{"status":"archived"}`).want(200)
			me.ofrep("archived", `{}`).failed(404, "archived", "FLAG_NOT_FOUND")
			me.enabled("deleted", nil)
			me.call("DELETE", flagPath("deleted"), nil).want(204)
			me.ofrep("deleted", `{}`).failed(404, "deleted", "FLAG_NOT_FOUND")
		},
		"the targetingKey is needed where a split is reached, and then its want is 400": func(_ *testing.T, me *client) {
			me.split("split")
			me.enabled("plain", nil)
			for _, context := range []string{`{}`, `{"targetingKey":""}`, `{"targetingKey":null}`, `{"TargetingKey":"u"}`} {
				me.ofrep("split", context).failed(400, "split", "TARGETING_KEY_MISSING")
				me.ofrep("plain", context).want(200).shows(map[string]any{"value": true})
			}
		},
		"what cannot be read is PARSE_ERROR, a context that is none INVALID_CONTEXT": func(_ *testing.T, me *client) {
			me.enabled("k", nil)
			for path, key := range map[string]string{ofrepPath + "/k": "k", ofrepPath: ""} {
				for _, body := range []string{``, `{`, `{"context":{"targetingKey":"u"}}x`, `{"context":{"a":1,"a":2}}`, `{"context":{},"context":{}}`, `{"context":{"a":"\u0000"}}`, `{"context":{"a":` + nested(70) + `}}`, strings.Repeat(" ", 1<<20+1)} {
					me.call("POST", path, body).failed(400, key, "PARSE_ERROR")
				}
				for _, body := range []string{`{}`, `{"context":null}`, `{"context":[]}`, `{"context":"u"}`, `{"context":{"targetingKey":7}}`, `{"Context":{}}`, `[]`, `null`} {
					me.call("POST", path, body).failed(400, key, "INVALID_CONTEXT")
				}
			}
		},
		"members beside the context are passed over": func(_ *testing.T, me *client) {
			me.enabled("k", nil)
			me.call("POST", ofrepPath+"/k", `{"a":{"b":[1]},"context":{},"flags":["k"]}`).want(200)
			me.call("POST", ofrepPath, `{"a":null,"context":{}}`).want(200)
			me.call("POST", ofrepPath+"/k", `{"a":{"b":[1],"b":[]},"context":{}}`).failed(400, "k", "PARSE_ERROR")
		},
		"other errors are GENERAL": func(_ *testing.T, me *client) {
			me.enabled("k", nil)
			for path, key := range map[string]string{ofrepPath + "/k": "k", ofrepPath: ""} {
				me.call("POST", path, `{"context":{}}`, "X-Environment", "none").failed(404, key, "GENERAL")
				me.call("POST", path, `{"context":{}}`, "Content-Type", "text/plain").failed(415, key, "GENERAL")
				me.call("POST", path, `{"context":{}}`, "Authorization", "").failed(401, key, "GENERAL")
				me.with(me.account().token).call("POST", path, `{"context":{}}`, "X-Tenant-ID", me.tenant).failed(403, key, "GENERAL")
				me.call("GET", path, nil).refused(405)
			}
		},
		"in the tenant and the environment of the call": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			me.call("POST", flagPath("k", "/enable"), nil, "X-Environment", "development").want(200)
			me.ofrep("k", `{}`).want(200).shows(map[string]any{"reason": "DISABLED"})
			me.ofrep("k", `{"environment":"development"}`).want(200).shows(map[string]any{"reason": "DISABLED"})
			me.ofrep("k", `{}`, "X-Environment", "development").want(200).shows(map[string]any{"reason": "STATIC"})
			me.ofrep("k", `{}`, "X-Tenant-ID", "").failed(404, "k", "FLAG_NOT_FOUND")
			me.join("viewer").ofrep("k", `{}`).want(200)
		},
		"all flags come in the order of their keys, each as it is alone": func(t *testing.T, me *client) {
			same(t, "no flags", me.ofrep("", `{}`).want(200).raw("flags"), `[]`)
			me.split("split")
			me.enabled("on", nil)
			me.createFlag("Off", map[string]any{"type": "number", "defaultValue": 1.0})
			me.enabled("archived", nil)
			me.call("PATCH", flagPath("archived"), `{"status":"archived"}`).want(200)
			me.enabled("deleted", nil)
			me.call("DELETE", flagPath("deleted"), nil).want(204)
			const context = `{"targetingKey":"u"}`
			var alone []string
			for _, key := range []string{"Off", "on", "split"} {
				alone = append(alone, string(me.ofrep(key, context).want(200).body))
			}
			same(t, "all", me.ofrep("", context).want(200).raw("flags"), `[`+strings.Join(alone, ",")+`]`)
			failure := map[string]any{"key": "split", "errorCode": "TARGETING_KEY_MISSING", "errorDetails": "targetingKey is required: the flag splits its traffic by it"}
			same(t, "the split without its unit", me.ofrep("", `{}`).want(200).object()["flags"].([]any)[2], failure)
		},
		"who has the answer already is told that nothing changed": func(t *testing.T, me *client) {
			me.split("split")
			me.enabled("on", nil)
			tag := func(context string) string {
				a := me.ofrep("", context).want(200)
				tag := a.header.Get("ETag")
				if len(tag) < 10 || tag[0] != '"' || tag[len(tag)-1] != '"' {
					t.Errorf("the ETag is %s", tag)
				}
				return tag
			}
			const context = `{"targetingKey":"u"}`
			first := tag(context)
			same(t, "the tag again", tag(context), first)
			same(t, "the tag of an attribute that nothing asks about", tag(`{"targetingKey":"u","plan":"pro"}`), first)
			for _, sent := range []string{first, "W/" + first, `"other", ` + first, `"other",W/` + first + `, "more"`, "*"} {
				a := me.ofrep("", context, "If-None-Match", sent).want(http.StatusNotModified)
				same(t, "the answer", []any{a.header.Get("ETag"), string(a.body), a.header.Get("Content-Type")}, []any{first, "", ""})
			}
			for _, sent := range []string{`"other"`, strings.Trim(first, `"`), `W/"other"`, first[:5]} {
				me.ofrep("", context, "If-None-Match", sent).want(200)
			}
			if without := tag(`{}`); without == first {
				t.Errorf("another context has the same tag")
			}
			me.call("POST", flagPath("on", "/disable"), nil).want(200)
			changed := me.ofrep("", context, "If-None-Match", first).want(200)
			if changed.header.Get("ETag") == first || !strings.Contains(string(changed.body), "DISABLED") {
				t.Errorf("a change is not told: %s", changed.body)
			}
			me.call("POST", ofrepPath+"?flagConfigEtag=a&flagConfigLastModified=1771622898", `{"context":`+context+`}`, "If-None-Match", changed.header.Get("ETag")).want(http.StatusNotModified)
			me.ofrep("", context, "If-None-Match", tag(context), "X-Environment", "none").refused(404)
			me.ofrep("on", context, "If-None-Match", "*").want(200)
		},
	}.run(t)
}
