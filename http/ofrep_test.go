package http_test

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

const ofrepPath = "/ofrep/v1/evaluate/flags"

// callOFREP evaluates a flag as OpenFeature's clients do, or all flags if the key is empty.
func callOFREP(c *nodetest.Client, key, context string, headers ...string) *nodetest.Answer {
	c.Service.T.Helper()
	path := ofrepPath
	if key != "" {
		path += "/" + key
	}
	return c.Call("POST", path, `{"context":`+context+`}`, headers...)
}

// failedWith checks that a response is a problem and an error of the protocol.
func failedWith(a *nodetest.Answer, status int, key, code string) *nodetest.Answer {
	a.T.Helper()
	a.Refused(status)
	a.Shows(map[string]any{"errorCode": code})
	body := a.Object()
	if body["errorDetails"] == "" || body["errorDetails"] != body["detail"] {
		a.T.Errorf("%s: the errorDetails are not the detail: %s", a.Call, a.Body)
	}
	if sent, named := body["key"]; named != (key != "") || named && sent != key {
		a.T.Errorf("%s: the key is not %q: %s", a.Call, key, a.Body)
	}
	return a
}

// metadataOf returns the metadata of an answer in production by a version of a flag.
func metadataOf(me *nodetest.Client, version int, more map[string]any) map[string]any {
	all := map[string]any{
		"flagVersion": version, "version": strconv.Itoa(version), "flagSetId": me.Tenant + "/production",
	}
	maps.Copy(all, more)
	return all
}

func TestOFREP(t *testing.T) {
	nodetest.Cases{
		"an answer has exactly these members": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			a := callOFREP(me, "k", `{"targetingKey":"u","plan":"pro","deep":{"a":[1,null,1e5]}}`).Want(200)
			nodetest.Same(t, "Content-Type", a.Header.Get("Content-Type"), "application/json")
			nodetest.Same(t, "the answer", a.Object(),
				map[string]any{"key": "k", "value": true, "reason": "STATIC", "metadata": metadataOf(me, 2, nil)})
			split(me, "split")
			id := me.Variations("split")[0]["id"]
			nodetest.Same(t, "the answer", callOFREP(me, "split", `{"targetingKey":"u"}`).Want(200).Object(), map[string]any{
				"key":      "split",
				"value":    "v",
				"reason":   "SPLIT",
				"variant":  "all",
				"metadata": metadataOf(me, 2, map[string]any{"variationId": id}),
			})
		},
		"a flag that is off is DISABLED, with its value": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", map[string]any{"type": "json", "defaultValue": map[string]any{"a": 1.50}})
			nodetest.Same(
				t,
				"the answer",
				callOFREP(me, "k", `{}`).Want(200).Object(),
				map[string]any{
					"key":      "k",
					"value":    map[string]any{"a": 1.5},
					"reason":   "DISABLED",
					"metadata": metadataOf(me, 1, nil),
				},
			)
		},
		"values keep their spelling": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Call("POST", "/api/v1/flags", `{"key":"n","type":"number","defaultValue":9007199254740993.0}`).Want(201)
			nodetest.Same(t, "the value", callOFREP(me, "n", `{}`).Want(200).Raw("value"), "9007199254740993.0")
		},
		"flags that do not exist are FLAG_NOT_FOUND, archived ones too": func(_ *testing.T, me *nodetest.Client) {
			failedWith(callOFREP(me, "none", `{}`), 404, "none", "FLAG_NOT_FOUND")
			failedWith(callOFREP(me, "a%2Fb%40%C3%A9", `{}`), 404, "a/b@é", "FLAG_NOT_FOUND")
			me.CreateEnabledFlag("archived", nil)
			me.Call("PATCH", nodetest.FlagPath("archived"), `{"status":"archived"}`).Want(200)
			failedWith(callOFREP(me, "archived", `{}`), 404, "archived", "FLAG_NOT_FOUND")
			me.CreateEnabledFlag("deleted", nil)
			me.Call("DELETE", nodetest.FlagPath("deleted"), nil).Want(204)
			failedWith(callOFREP(me, "deleted", `{}`), 404, "deleted", "FLAG_NOT_FOUND")
		},
		"the targetingKey is needed where a split is reached, and then its want is 400": func(_ *testing.T, me *nodetest.Client) {
			split(me, "split")
			me.CreateEnabledFlag("plain", nil)
			for _, context := range []string{`{}`, `{"targetingKey":""}`, `{"targetingKey":null}`, `{"TargetingKey":"u"}`} {
				failedWith(callOFREP(me, "split", context), 400, "split", "TARGETING_KEY_MISSING")
				callOFREP(me.Lenient(), "plain", context).Want(200).Shows(map[string]any{"value": true})
			}
		},
		"what cannot be read is PARSE_ERROR, a context that is none INVALID_CONTEXT": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			for path, key := range map[string]string{ofrepPath + "/k": "k", ofrepPath: ""} {
				for _, body := range []string{``, `{`, `{"context":{"targetingKey":"u"}}x`, `{"context":{"a":1,"a":2}}`, `{"context":{},"context":{}}`, `{"context":{"a":"\u0000"}}`, `{"context":{"a":` + nested(70) + `}}`, strings.Repeat(" ", 1<<20+1)} {
					failedWith(me.Call("POST", path, body), 400, key, "PARSE_ERROR")
				}
				for _, body := range []string{`{}`, `{"context":null}`, `{"context":[]}`, `{"context":"u"}`, `{"context":{"targetingKey":7}}`, `{"Context":{}}`, `[]`, `null`} {
					failedWith(me.Call("POST", path, body), 400, key, "INVALID_CONTEXT")
				}
			}
		},
		"members beside the context are passed over": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			me.Call("POST", ofrepPath+"/k", `{"a":{"b":[1]},"context":{},"flags":["k"]}`).Want(200)
			me.Call("POST", ofrepPath, `{"a":null,"context":{}}`).Want(200)
			failedWith(me.Call("POST", ofrepPath+"/k", `{"a":{"b":[1],"b":[]},"context":{}}`), 400, "k", "PARSE_ERROR")
		},
		"other errors are GENERAL": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			for path, key := range map[string]string{ofrepPath + "/k": "k", ofrepPath: ""} {
				failedWith(me.Call("POST", path, `{"context":{}}`, "X-Environment", "none"), 404, key, "GENERAL")
				failedWith(me.Call("POST", path, `{"context":{}}`, "Content-Type", "text/plain"), 415, key, "GENERAL")
				failedWith(me.Call("POST", path, `{"context":{}}`, "Authorization", ""), 401, key, "GENERAL")
				failedWith(withToken(me, newAccount(me).token).Call("POST", path, `{"context":{}}`, "X-Tenant-ID", me.Tenant), 403,
					key, "GENERAL")
				me.Call("GET", path, nil).Refused(405)
			}
		},
		"query parameters that are not the protocol's are refused: the answer would be another one than was asked for": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			for path, key := range map[string]string{ofrepPath + "/k": "k", ofrepPath: ""} {
				for _, query := range []string{"at=2026-01-02T03:04:05Z", "version=1", "explain=true", "other=", "flagConfigEtag=a&at="} {
					failedWith(me.Call("POST", path+"?"+query, `{"context":{}}`), 400, key, "GENERAL")
				}
			}
			failedWith(me.Call("POST", ofrepPath+"/k?flagConfigEtag=a", `{"context":{}}`), 400, "k", "GENERAL")
			me.Call("POST", ofrepPath+"?flagConfigEtag=a&flagConfigLastModified=1771622898", `{"context":{}}`).Want(200)
			me.Call("POST", ofrepPath+"?flagConfigEtag=", `{"context":{}}`).Want(200)
		},
		"in the tenant and the environment of the call": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			me.Call("POST", nodetest.FlagPath("k", "/enable"), nil, "X-Environment", "development").Want(200)
			callOFREP(me, "k", `{}`).Want(200).Shows(map[string]any{"reason": "DISABLED"})
			callOFREP(me, "k", `{"environment":"development"}`).Want(200).Shows(map[string]any{"reason": "DISABLED"})
			callOFREP(me, "k", `{}`, "X-Environment", "development").Want(200).Shows(map[string]any{"reason": "STATIC"})
			failedWith(callOFREP(me, "k", `{}`, "X-Tenant-ID", ""), 404, "k", "FLAG_NOT_FOUND")
			callOFREP(me.Join("viewer"), "k", `{}`).Want(200)
		},
		"all flags come in the order of their keys, each as it is alone": func(t *testing.T, me *nodetest.Client) {
			nodetest.Same(t, "no flags", callOFREP(me, "", `{}`).Want(200).Raw("flags"), `[]`)
			split(me, "split")
			me.CreateEnabledFlag("on", nil)
			me.CreateFlag("Off", map[string]any{"type": "number", "defaultValue": 1.0})
			me.CreateEnabledFlag("archived", nil)
			me.Call("PATCH", nodetest.FlagPath("archived"), `{"status":"archived"}`).Want(200)
			me.CreateEnabledFlag("deleted", nil)
			me.Call("DELETE", nodetest.FlagPath("deleted"), nil).Want(204)
			const context = `{"targetingKey":"u"}`
			var alone []string
			for _, key := range []string{"Off", "on", "split"} {
				one := string(callOFREP(me, key, context).Want(200).Body)
				alone = append(alone, strings.Replace(one, `,"flagSetId":"`+me.Tenant+`/production"`, "", 1)) // it is in the whole's
			}
			nodetest.Same(t, "all", callOFREP(me, "", context).Want(200).Raw("flags"), `[`+strings.Join(alone, ",")+`]`)
			failure := map[string]any{
				"key":          "split",
				"errorCode":    "TARGETING_KEY_MISSING",
				"errorDetails": "targetingKey is required: the flag splits its traffic by it",
			}
			nodetest.Same(t, "the split without its unit", callOFREP(me, "", `{}`).Want(200).Object()["flags"].([]any)[2],
				failure)
		},
		"who has the answer already is told that nothing changed": func(t *testing.T, me *nodetest.Client) {
			split(me, "split")
			me.CreateEnabledFlag("on", nil)
			tag := func(context string) string {
				a := callOFREP(me, "", context).Want(200)
				tag := a.Header.Get("ETag")
				if len(tag) < 10 || tag[0] != '"' || tag[len(tag)-1] != '"' {
					t.Errorf("the ETag is %s", tag)
				}
				return tag
			}
			const context = `{"targetingKey":"u"}`
			first := tag(context)
			nodetest.Same(t, "the tag again", tag(context), first)
			nodetest.Same(t, "the tag of an attribute that nothing asks about", tag(`{"targetingKey":"u","plan":"pro"}`), first)
			compressed := strings.TrimSuffix(first, `"`) + `-gzip"` // as Apache makes it
			for _, sent := range []string{first, "W/" + first, compressed, "W/" + compressed, `"other", ` + first, `"other",W/` + first + `, "more"`, "*"} {
				a := callOFREP(me, "", context, "If-None-Match", sent).Want(http.StatusNotModified)
				nodetest.Same(t, "the answer", []any{a.Header.Get("ETag"), string(a.Body), a.Header.Get("Content-Type")},
					[]any{first, "", ""})
			}
			for _, sent := range []string{`"other"`, strings.Trim(first, `"`), `W/"other"`, first[:5]} {
				callOFREP(me, "", context, "If-None-Match", sent).Want(200)
			}
			if without := tag(`{}`); without == first {
				t.Errorf("another context has the same tag")
			}
			me.Call("POST", nodetest.FlagPath("on", "/disable"), nil).Want(200)
			changed := callOFREP(me, "", context, "If-None-Match", first).Want(200)
			if changed.Header.Get("ETag") == first || !strings.Contains(string(changed.Body), "DISABLED") {
				t.Errorf("a change is not told: %s", changed.Body)
			}
			me.Call("POST", ofrepPath+"?flagConfigEtag=a&flagConfigLastModified=1771622898", `{"context":`+context+`}`, "If-None-Match", changed.Header.Get("ETag")).
				Want(http.StatusNotModified)
			callOFREP(me, "", context, "If-None-Match", tag(context), "X-Environment", "none").Refused(404)
			callOFREP(me.Lenient(), "on", context, "If-None-Match", "*").Want(200)
		},
	}.Run(t)
}
