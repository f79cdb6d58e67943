package http_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/http/evaluation"
	"flagledger/http/quota"
	"flagledger/projections/snapshot"
)

const keysPath = "/api/v1/evaluation-keys"

// createKey creates an evaluation key, and returns it with a client that has nothing else.
func createKey(me *nodetest.Client, kind string, more map[string]any) (map[string]any, *nodetest.Client) {
	me.Service.T.Helper()
	body := map[string]any{"name": "Shop", "kind": kind, "environment": "production"}
	for name, value := range more {
		body[name] = value
	}
	key := me.Call("POST", keysPath, body).Want(201).Object()
	return key, me.Service.Anonymous().WithToken(key["key"].(string))
}

// twoFlags creates a flag that browsers see and one that they do not. Both serve true, and false by a rule for pro.
func twoFlags(me *nodetest.Client) {
	me.Service.T.Helper()
	for key, clientSide := range map[string]bool{"seen": true, "hidden": false} {
		me.CreateEnabledFlag(key, map[string]any{"clientSide": clientSide})
		me.SetRules(key, `{"rules":[{"name":"secret rule","conditions":[{"attribute":"plan","op":"in","values":["pro"]}],"serve":{"value":false}}]}`).
			Want(200)
	}
}

func TestEvaluationKeys(t *testing.T) {
	const pro = `{"targetingKey":"u","attributes":{"plan":"pro"}}`
	nodetest.Cases{
		"are created, listed, changed, rotated and deleted": func(t *testing.T, me *nodetest.Client) {
			browserKey, _ := createKey(me, "browser", map[string]any{"origins": []any{"https://app.example.com"}})
			serverKey, server := createKey(me, "server", map[string]any{"edge": true, "expiresAt": "2126-01-02T03:04:05.000Z"})
			if text := browserKey["key"].(string); len(text) != len("pk_")+26 || text != strings.ToLower(text) {
				t.Errorf("the key is %s", text)
			}
			me.CreateEnabledFlag("k", nil)
			server.Evaluate("k", `{}`).Want(200)
			delete(serverKey, "key")
			list := me.Join("viewer").Call("GET", keysPath, nil).Want(200).List()
			nodetest.Same(t, "the keys", nodetest.Column(list, "id"), []any{browserKey["id"], serverKey["id"]})
			for i, key := range []map[string]any{browserKey, serverKey} {
				one := me.Call("GET", keysPath+"/"+key["id"].(string), nil).Want(200).Object()
				for _, shown := range []map[string]any{list[i], one} {
					delete(shown, "lastUsedAt")
					nodetest.Same(t, "a key", shown, key)
				}
			}
			made := me.Call("POST", keysPath, `{"name":"a","kind":"browser","environment":"production"}`).Want(201)
			where := made.Header.Get("Location")
			me.Call("GET", where, nil).Want(200).Shows(made.Object())
			me.Service.SignUp(nodetest.Address()).Call("GET", where, nil).Refused(404)
			me.Call("DELETE", where, nil).Want(204)
			me.Call("GET", where, nil).Refused(404)
			path := keysPath + "/" + browserKey["id"].(string)
			change := map[string]any{"name": "Store", "origins": []any{}, "expiresAt": "2126-01-02T03:04:05.000Z"}
			me.Call("PATCH", path, change).Want(200).Shows(change)
			me.Call("PATCH", path, `{"expiresAt":""}`).Refused(422, "expiresAt")
			me.Call("POST", keysPath, `{"name":"a","kind":"server","environment":"production","expiresAt":""}`).Refused(422, "expiresAt")
			me.Call("POST", keysPath, `{"name":"a","kind":"browser","environment":"production","origins":["https://a.example:99999"]}`).
				Refused(422, "origins[0]")
			me.Call("PATCH", path, `{"expiresAt":null}`).Want(200).Shows(map[string]any{"name": "Store", "expiresAt": nil})
			nodetest.Same(t, "the list after it", me.Call("GET", keysPath, nil).Want(200).List()[0]["name"], "Store")
			rotated := me.Call("POST", path+"/rotate", nil).Want(200).Object()
			nodetest.Same(t, "the listed key after a rotation", me.Call("GET", keysPath, nil).List()[0]["key"], rotated["key"])
			me.Call("DELETE", path, nil).Want(204)
			me.Call("DELETE", path, nil).Refused(404)
			nodetest.Same(t, "keys that are left", len(me.Call("GET", keysPath, nil).Want(200).List()), 1)
		},
		"are refused with all that is wrong": func(_ *testing.T, me *nodetest.Client) {
			me.Call("POST", keysPath, `{"name":"","kind":"phone","environment":"none","expiresAt":"x","bogus":1}`).
				Refused(422, "name", "kind", "environment", "expiresAt", "bogus")
			me.Call("POST", keysPath, `{"name":"a","kind":"server","environment":"production","origins":["https://a.example"],"signed":true,"expiresAt":"0001-01-01T00:00:00Z"}`).
				Refused(422, "origins", "signed", "expiresAt")
			me.Call("POST", keysPath, `{"name":"a","kind":"browser","environment":"production","edge":true,"origins":["http://a.example"]}`).
				Refused(422, "edge", "origins[0]")
			key, _ := createKey(me, "browser", nil)
			me.Call("PATCH", keysPath+"/"+key["id"].(string), `{"name":"","origins":["*"],"expiresAt":"2020-01-02T03:04:05Z","kind":"server"}`).
				Refused(422, "name", "origins[0]", "expiresAt", "kind")
		},
		"of browsers see flags for browsers, and no rules": func(t *testing.T, me *nodetest.Client) {
			twoFlags(me)
			_, page := createKey(me, "browser", nil)
			page.Evaluate("seen", pro).Want(200).Shows(map[string]any{"value": false, "reason": "RULE_MATCH", "ruleId": nil, "revision": "3"})
			missing := page.Evaluate("none", pro).Refused(404)
			hidden := page.Evaluate("hidden", pro).Refused(404)
			nodetest.Same(t, "a hidden flag", hidden.Object()["detail"], missing.Object()["detail"])
			all := page.Call("POST", "/api/v1/flags/evaluate", pro).Want(200)
			named := page.Call("POST", "/api/v1/flags/evaluate", `{"flagKeys":["hidden","none","seen"]}`).Want(200)
			of := func(key string) *nodetest.Answer {
				return page.Call("POST", "/ofrep/v1/evaluate/flags/"+key, `{"context":{"plan":"pro"}}`)
			}
			nodetest.Same(t, "OFREP's answer to a hidden flag", of("hidden").Want(404).Object()["errorCode"], "FLAG_NOT_FOUND")
			many := page.Call("POST", "/ofrep/v1/evaluate/flags", `{"context":{"plan":"pro"}}`).Want(200)
			nodetest.Same(t, "its flags", nodetest.Column(asMaps(many.Object()["flags"]), "key"), []any{"seen"})
			for _, a := range []*nodetest.Answer{all, of("seen").Want(200), many} {
				for _, secret := range []string{"hidden", "ruleId\":\"", "secret rule"} {
					if strings.Contains(string(a.Body), secret) {
						t.Errorf("%s tells %s: %s", a.Call, secret, a.Body)
					}
				}
			}
			nodetest.Same(t, "what a named hidden flag is", object(named.Object()["errors"])["hidden"], object(named.Object()["errors"])["none"])
			me.Call("PATCH", nodetest.FlagPath("hidden"), `{"clientSide":true}`).Want(200)
			page.Evaluate("hidden", pro).Want(200)
		},
		"of servers evaluate all flags of their environment": func(_ *testing.T, me *nodetest.Client) {
			twoFlags(me)
			_, server := createKey(me, "server", nil)
			server.Evaluate("hidden", pro).Want(200).Shows(map[string]any{"value": false})
			me.Evaluate("hidden", pro, "X-Flag-Context", "x").Refused(422, "X-Flag-Context")
			byHeader := me.Service.Anonymous()
			byHeader.Evaluate("hidden", pro, "X-API-Key", server.Token).Want(200)
			byHeader.Evaluate("hidden", pro, "X-API-Key", me.Token).Refused(401)
			byHeader.Evaluate("hidden", pro, "X-API-Key", server.Token, "Authorization", "Bearer "+server.Token).Refused(401)
			server.Call("GET", streamPath+"?ticket=x", nil).Refused(401)
			server.Evaluate("hidden", pro, "X-Tenant-ID", me.Tenant, "X-Environment", "production").Want(200)
			server.Evaluate("hidden", pro, "X-Tenant-ID", me.NewTenant("other").Tenant).Refused(403)
			server.Evaluate("hidden", pro, "X-Environment", "development").Refused(403)
			server.Evaluate("hidden", `{"environment":"development"}`).Refused(403)
			server.Evaluate("hidden", `{"environment":"production"}`, "X-Environment", "development").Refused(403)
			server.Call("GET", streamPath, nil, "X-Environment", "*").Refused(403)
		},
		"ask for the present alone": func(_ *testing.T, me *nodetest.Client) {
			twoFlags(me)
			for _, kind := range []string{"browser", "server"} {
				_, c := createKey(me, kind, nil)
				for _, query := range []string{"at=2026-01-02T03:04:05Z", "at=x", "version=1", "explain=true", "preview=true", "preview=false", "explain=false", "revision=1", "revision=x"} {
					c.Call("POST", nodetest.FlagPath("seen", "/evaluate?"+query), pro).Refused(403)
					c.Call("POST", "/api/v1/flags/evaluate?"+query, pro).Refused(403)
					c.Call("POST", "/ofrep/v1/evaluate/flags/seen?"+query, `{"context":{}}`).Want(403)
					c.Call("POST", "/ofrep/v1/evaluate/flags?"+query, `{"context":{}}`).Want(403)
					c.Call("GET", streamPath+"?"+query, nil).Refused(403)
				}
				c.Call("POST", nodetest.FlagPath("seen", "/rules/evaluate"), pro).Refused(403)
			}
		},
		"work for a day after a rotation": func(t *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			key, before := createKey(me, "server", nil)
			rotate := keysPath + "/" + key["id"].(string) + "/rotate"
			rotated := me.Call("POST", rotate, nil).Want(200).Object()
			after := me.Service.Anonymous().WithToken(rotated["key"].(string))
			if after.Token == before.Token {
				t.Error("the key is the same")
			}
			before.Evaluate("k", `{}`).Want(200)
			after.Evaluate("k", `{}`).Want(200)
			last := me.Call("POST", rotate, `{"endNow":true}`).Want(200).Object()
			before.Evaluate("k", `{}`).Refused(401)
			after.Evaluate("k", `{}`).Refused(401)
			me.Service.Anonymous().WithToken(last["key"].(string)).Evaluate("k", `{}`).Want(200)
		},
		"end with their environment": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			_, c := createKey(me, "server", map[string]any{"environment": "development"})
			c.Evaluate("k", `{}`).Want(200)
			development := "/api/v1/tenants/" + me.Tenant + "/environments"
			me.Call("DELETE", development+"/development", nil).Want(204)
			c.Evaluate("k", `{}`).Refused(401)
			me.Call("POST", development, `{"environment":"development"}`).Want(201)
			c.Evaluate("k", `{}`).Refused(401)
		},
		"are callers in the usage": func(_ *testing.T, me *nodetest.Client) {
			me.CreateEnabledFlag("k", nil)
			key, c := createKey(me, "server", nil)
			c.Evaluate("k", `{}`).Want(200)
			_, inBulk := createKey(me, "server", nil)
			inBulk.Call("POST", "/ofrep/v1/evaluate/flags", `{"context":{}}`).Want(200)
			me.Service.Eventually("the keys' evaluations are shown", func() bool {
				list := me.Call("GET", keysPath, nil).Want(200).List()
				used := list[0]["lastUsedAt"] != nil && list[1]["lastUsedAt"] != nil
				clients := asMaps(me.Call("GET", nodetest.FlagPath("k", "/metrics"), nil).Want(200).Object()["clients"])
				return used && len(clients) == 1 && clients[0]["clientId"] == key["id"] && clients[0]["name"] == "Shop"
			})
		},
	}.Run(t)
}

// Each call for evaluation keys takes them in both headers. It refuses keys of a deleted tenant, and another tenant's
// for this one.
func TestCallsForEvaluationKeys(t *testing.T) {
	t.Parallel()
	const servers, all = "server", "browser server"
	calls := []struct {
		kinds, method, path string
		body                any
	}{
		{all, "POST", nodetest.FlagPath("seen", "/evaluate"), `{}`},
		{all, "POST", manyPath, `{}`},
		{all, "POST", "/ofrep/v1/evaluate/flags/seen", `{"context":{}}`},
		{all, "POST", "/ofrep/v1/evaluate/flags", `{"context":{}}`},
		{all, "HEAD", streamPath, nil},
		{servers, "HEAD", feedPath, nil},
		{servers, "POST", "/api/v1/usage", reportOf("r", map[string]any{"flagKey": "seen", "value": true, "count": 1})},
		{servers, "POST", "/v1/logs", `{"resourceLogs":[]}`},
	}
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	anyone := me.Service.Anonymous().Lenient()
	twoFlags(me)
	gone := me.NewTenant("gone")
	twoFlags(gone)
	other := me.Service.SignUp(nodetest.Address())
	other.CreateEnabledFlag("seen", map[string]any{"clientSide": true})
	keys := map[string]map[string]string{} // by owner and kind
	for name, owner := range map[string]*nodetest.Client{"mine": me, "gone": gone, "another": other} {
		keys[name] = map[string]string{}
		for _, kind := range []string{"browser", "server"} {
			_, c := createKey(owner, kind, nil)
			keys[name][kind] = c.Token
		}
	}
	for _, c := range calls {
		if status := anyone.Call(c.method, c.path, c.body, "X-API-Key", keys["gone"]["server"]).Status; status/100 != 2 {
			t.Errorf("%s %s is answered %d before the tenant is deleted", c.method, c.path, status)
		}
	}
	gone.Call("DELETE", "/api/v1/tenants/"+gone.Tenant, nil).Want(204)
	for _, c := range calls {
		for _, kind := range strings.Fields(c.kinds) {
			for _, header := range []string{"Authorization", "X-API-Key"} {
				ask := func(want int, owner string, headers ...string) {
					t.Helper()
					key := keys[owner][kind]
					if header == "Authorization" {
						key = "Bearer " + key
					}
					a := anyone.Call(c.method, c.path, c.body, append(headers, header, key)...)
					if a.Status != want && (want != 200 || a.Status != 202) {
						t.Errorf("%s %s with a %s key of %s in %s, and %v: %d %s", c.method, c.path, kind, owner, header, headers,
							a.Status, a.Body)
					}
				}
				ask(200, "mine")
				ask(200, "mine", "X-Tenant-ID", me.Tenant, "X-Environment", "production")
				ask(403, "mine", "X-Environment", "development")
				ask(403, "mine", "X-Tenant-ID", other.Tenant)
				ask(403, "another", "X-Tenant-ID", me.Tenant)
				ask(401, "gone")
				ask(401, "gone", "X-Tenant-ID", gone.Tenant)
				ask(401, "gone", "X-Tenant-ID", me.Tenant)
			}
		}
	}
	for _, kind := range []string{"browser", "server"} {
		l := openStream(anyone, streamPath, "X-API-Key", keys["mine"][kind])
		nodetest.Same(t, "the first event", l.next().Data.Type, "connected")
	}
}

// signContext signs a context with a secret.
func signContext(t testing.TB, secret string, algorithm jose.SignatureAlgorithm, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: []byte(secret)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSignedContexts(t *testing.T) {
	nodetest.Cases{
		"are the context": func(t *testing.T, me *nodetest.Client) {
			twoFlags(me)
			key, page := createKey(me, "browser", map[string]any{"signed": true})
			in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
			claims := func(plan string, exp any) map[string]any {
				return map[string]any{"targetingKey": "u", "attributes": map[string]any{"plan": plan, "n": 1}, "exp": exp, "iss": "shop"}
			}
			secret := key["signingSecret"].(string)
			signed := signContext(t, secret, jose.HS256, claims("pro", in(time.Hour)))
			ask := func(body, context string) *nodetest.Answer {
				return page.Evaluate("seen", body, "X-Flag-Context", context)
			}
			ask(`{}`, signed).Want(200).Shows(map[string]any{"value": false})
			ask(`{"targetingKey":"u"}`, signed).Want(200)
			ask(`{}`, signContext(t, secret, jose.HS256, claims("free", in(time.Hour)))).Want(200).Shows(map[string]any{"value": true})
			ask(`{"targetingKey":"another"}`, signed).Refused(422, "targetingKey")
			ask(`{"attributes":{"plan":"pro"}}`, signed).Refused(422, "attributes")
			other, _ := createKey(me, "browser", map[string]any{"signed": true})
			none := strings.Join([]string{"eyJhbGciOiJub25lIn0", strings.Split(signed, ".")[1], ""}, ".")
			for what, context := range map[string]string{
				"no context":           "",
				"no JWT":               "x",
				"another key's secret": signContext(t, other["signingSecret"].(string), jose.HS256, claims("pro", in(time.Hour))),
				"an expired one":       signContext(t, secret, jose.HS256, claims("pro", in(-time.Minute))),
				"one without an end":   signContext(t, secret, jose.HS256, map[string]any{"targetingKey": "u"}),
				"one for two days":     signContext(t, secret, jose.HS256, claims("pro", in(48*time.Hour))),
				"another algorithm":    signContext(t, secret+secret, jose.HS512, claims("pro", in(time.Hour))),
				"no algorithm":         none,
				"our own token":        me.Token,
				"changed claims":       signed[:strings.Index(signed, ".")+5] + "A" + signed[strings.Index(signed, ".")+6:],
			} {
				if a := ask(`{}`, context); a.Status != 401 {
					t.Errorf("%s is answered %d %s", what, a.Status, a.Body)
				}
			}
			ofrep := func(body string) *nodetest.Answer {
				return page.Call("POST", "/ofrep/v1/evaluate/flags/seen", body, "X-Flag-Context", signed)
			}
			ofrep(`{"context":{"targetingKey":"u"}}`).Want(200).Shows(map[string]any{"value": false})
			nodetest.Same(t, "attributes beside it", ofrep(`{"context":{"plan":"pro"}}`).Want(400).Object()["errorCode"], "INVALID_CONTEXT")
			rotated := me.Call("POST", keysPath+"/"+key["id"].(string)+"/rotate", nil).Want(200).Object()
			nodetest.Same(t, "the key after a rotation", rotated["key"], key["key"])
			ask(`{}`, signed).Want(200)
			ask(`{}`, signContext(t, rotated["signingSecret"].(string), jose.HS256, claims("pro", in(time.Hour)))).Want(200)
			me.Call("POST", keysPath+"/"+key["id"].(string)+"/rotate", `{"endNow":true}`).Want(200)
			ask(`{}`, signed).Refused(401)
		},
		"are for signed keys alone": func(_ *testing.T, me *nodetest.Client) {
			twoFlags(me)
			_, page := createKey(me, "browser", nil)
			page.Evaluate("seen", `{}`, "X-Flag-Context", "x").Refused(422, "X-Flag-Context")
		},
	}.Run(t)
}

func TestOriginsOfBrowserKeys(t *testing.T) {
	nodetest.Cases{
		"other pages are refused": func(t *testing.T, me *nodetest.Client) {
			twoFlags(me)
			_, page := createKey(me, "browser", map[string]any{"origins": []any{"https://app.example.com", "https://*.shop.example", "http://localhost:*"}})
			path := nodetest.FlagPath("seen", "/evaluate")
			for _, origin := range []string{"https://app.example.com", "https://a.shop.example", "https://a.b.shop.example", "http://localhost:5173", "http://localhost"} {
				a := allows(browser(page, origin, "POST", path, `{}`).Want(200), origin)
				if !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "ETag") {
					t.Error("a page cannot read the ETag")
				}
			}
			for _, origin := range []string{
				"https://app.example.com.evil.example", "https://app.example.com:8443", "http://app.example.com", "https://APP.example.com",
				"https://app.example.com.", "null", "https://shop.example", "https://evilshop.example", "https://evil.example/.shop.example",
				"http://localhost.evil.example", "http://localhost:1@evil.example",
			} {
				a := browser(page, origin, "POST", path, `{}`).Refused(403)
				nodetest.Same(t, "who reads the refusal of "+origin, a.Header.Get("Access-Control-Allow-Origin"), "")
			}
			invalid := browser(page.WithToken("pk_none"), "https://app.example.com", "POST", path, `{}`).Refused(401)
			nodetest.Same(t, "who reads that a key is invalid", invalid.Header.Get("Access-Control-Allow-Origin"), "*")
			page.Evaluate("seen", `{}`).Want(200) // an app
			_, anywhere := createKey(me, "browser", nil)
			for _, origin := range []string{"https://elsewhere.example", "null"} {
				allows(browser(anywhere, origin, "POST", path, `{}`).Want(200), origin)
			}
			_, server := createKey(me, "server", nil)
			nodetest.Same(t, "a page with a server key", browser(server, "https://app.example.com", "POST", path, `{}`).Want(200).
				Header.Get("Access-Control-Allow-Origin"), "")
		},
		"a preflight of an evaluation is answered for each": func(t *testing.T, me *nodetest.Client) {
			const headers = "authorization,baggage,content-type,if-none-match,traceparent,x-api-key,x-flag-context"
			for path, method := range map[string]string{
				nodetest.FlagPath("k", "/evaluate"): "POST", "/api/v1/flags/evaluate": "POST", streamPath: "GET",
				"/ofrep/v1/evaluate/flags": "POST", "/ofrep/v1/evaluate/flags/k": "POST",
			} {
				for _, origin := range []string{"https://app.example.com", "null"} {
					a := preflight(me.Service, origin, path, method, headers)
					nodetest.Same(t, path, a.Header.Get("Access-Control-Allow-Origin"), "*")
					nodetest.Same(t, path, a.Header.Get("Access-Control-Allow-Headers"), headers)
				}
			}
			for _, path := range []string{"/api/v1/flags", nodetest.FlagPath("k"), nodetest.FlagPath("k", "/rules"), "/api/flags/k/evaluate"} {
				a := preflight(me.Service, "https://app.example.com", path, "POST", headers)
				nodetest.Same(t, path, a.Header.Get("Access-Control-Allow-Origin"), "")
			}
		},
	}.Run(t)
}

func TestStreamsOfBrowserKeys(t *testing.T) {
	nodetest.Cases{
		"name flags for browsers alone": func(t *testing.T, me *nodetest.Client) {
			twoFlags(me)
			_, page := createKey(me, "browser", map[string]any{"origins": []any{"https://app.example.com"}})
			many := browser(page, "https://app.example.com", "POST", "/ofrep/v1/evaluate/flags", `{"context":{}}`).Want(200)
			url := asMaps(many.Object()["eventStreams"])[0]["url"].(string)
			path := strings.TrimPrefix(url, me.Service.URL)
			l := openStream(me.Service.Anonymous(), path, "Origin", "https://app.example.com")
			nodetest.Same(t, "the first event", l.next().Data.Type, "connected")
			me.Call("PATCH", nodetest.FlagPath("hidden"), `{"name":"x"}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("seen"), `{"name":"x"}`).Want(200)
			nodetest.Same(t, "an event", l.next().flags(), "seen 4")
			me.Call("PATCH", nodetest.FlagPath("hidden"), `{"clientSide":true}`).Want(200)
			nodetest.Same(t, "of a flag that is shown", l.next().flags(), "hidden 5")
			me.Call("PATCH", nodetest.FlagPath("hidden"), `{"clientSide":false}`).Want(200)
			nodetest.Same(t, "of a flag that is hidden", l.next().flags(), "hidden 6 deleted")
			nodetest.Same(t, "another page's stream", browser(me.Service.Anonymous(), "https://evil.example", "GET", path, nil).Status, 403)
		},
		"name dependents of their environment alone": func(t *testing.T, me *nodetest.Client) {
			createSegment(me, "beta", "")
			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/environments", `{"environment":"staging"}`).Want(201)
			flagFor(me, "hidden-here", "beta")
			me.CreateFlag("seen-elsewhere", map[string]any{"clientSide": true})
			rule := strings.TrimSuffix(ofSegment("beta"), "}") + `,"serve":{"value":true}}`
			me.SetRules("seen-elsewhere", `{"rules":[`+rule+`]}`, "X-Environment", "staging").Want(200)
			_, page := createKey(me, "browser", nil)
			l := listen(page)
			members(me, "beta", `{"list":"included","add":["ada"]}`).Want(200)
			me.Call("PATCH", nodetest.FlagPath("seen-elsewhere"), `{"name":"x"}`).Want(200)
			nodetest.Same(t, "an event", l.next().flags(), "seen-elsewhere 3")
		},
		"end with the key": func(t *testing.T, me *nodetest.Client) {
			twoFlags(me)
			key, page := createKey(me, "browser", nil)
			l := listen(page)
			me.Call("DELETE", keysPath+"/"+key["id"].(string), nil).Want(204)
			if e, open := <-l.events; open {
				t.Errorf("the stream goes on with %+v", e)
			}
		},
	}.Run(t)
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	later := &atomic.Int64{}
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development", Now: now}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	twoFlags(me)
	_, ends := createKey(me, "server", map[string]any{"expiresAt": now().Add(time.Hour).Format(time.RFC3339)})
	key, rotated := createKey(me, "server", nil)
	next := me.Call("POST", keysPath+"/"+key["id"].(string)+"/rotate", nil).Want(200).Object()
	ends.Evaluate("seen", `{}`).Want(200)
	rotated.Evaluate("seen", `{}`).Want(200)
	later.Store(int64(2 * time.Hour))
	ends.Evaluate("seen", `{}`).Refused(401)
	rotated.Evaluate("seen", `{}`).Want(200)
	later.Store(int64(25 * time.Hour))
	rotated.Evaluate("seen", `{}`).Refused(401)
	s.Anonymous().WithToken(next["key"].(string)).Evaluate("seen", `{}`).Want(200)
}

// An open stream ends when its key expires, also if that was set or moved once it was open. No heartbeat helps it.
func TestStreamsEndWhenTheirKeyExpires(t *testing.T) {
	me := streaming(t, evaluation.StreamLimits{Heartbeat: time.Hour}).SignUp("me@example.com")
	twoFlags(me)
	for _, expiresAt := range []any{nil, "2126-01-02T03:04:05Z"} {
		key, server := createKey(me, "server", map[string]any{"expiresAt": expiresAt})
		many := server.Call("POST", "/ofrep/v1/evaluate/flags", `{"context":{}}`).Want(200)
		url := asMaps(many.Object()["eventStreams"])[0]["url"].(string)
		byTicket := openStream(me.Service.Anonymous(), strings.TrimPrefix(url, me.Service.URL))
		byTicket.next()
		byKey, feed := listen(server), readFeed(server)
		feed.all()
		var end time.Time
		for wait, set := 2*time.Second, false; !set; wait *= 2 { // a busy machine may take longer to set it than it lasts
			end = time.Now().Add(wait)
			a := me.Call("PATCH", keysPath+"/"+key["id"].(string), map[string]any{"expiresAt": end.Format(time.RFC3339Nano)})
			set = a.Status == 200
			if !set {
				a.Refused(422, "expiresAt")
			}
		}
		nodetest.Same(t, "the key in the feed", feed.of(snapshot.FeedKey).Key.KeyID, key["id"])
		byKey.ends()
		byTicket.ends()
		feed.ends()
		if early := time.Until(end); early > 10*time.Millisecond {
			t.Errorf("the streams end %v before the key", early)
		}
	}
}

// A flood with a browser key, which anyone may know, leaves the servers of its tenant a part of the requests.
func TestBrowserKeysHaveALimitOfTheirOwn(t *testing.T) {
	t.Parallel()
	proxies, err := quota.ParseProxies("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", ProxyNetworks: proxies, Now: stopped().now,
		Limits: quota.Limits{
			Plans: map[events.Plan]int{events.FreePlan: 100}, Anonymous: 1_000_000, Auth: 1_000_000, Browser: 30,
		},
	}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	twoFlags(me)
	_, page := createKey(me, "browser", nil)
	_, server := createKey(me, "server", nil)
	answered := map[string]int{}
	for i := range 200 {
		address := fmt.Sprint("192.0.2.", i%4)
		if page.Evaluate("seen", `{}`, "X-Forwarded-For", address).Status == 200 {
			answered[address]++
		}
	}
	total := 0
	for address, n := range answered {
		if total += n; n > 30 {
			t.Errorf("%s has %d answers", address, n)
		}
	}
	if total < 40 || total > 80 {
		t.Errorf("%d calls with the browser key are answered", total)
	}
	server.Evaluate("seen", `{}`).Want(200)
}
