package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/migrations/pgtest"
)

const clients = "/api/v1/oauth/clients"

// credentials is the form that a client asks for a token with, and whatever is added to it.
func credentials(id, secret string, more ...string) []string {
	return append([]string{"grant_type", "client_credentials", "client_id", id, "client_secret", secret}, more...)
}

// denied checks that an answer is an error of the token endpoint: a problem in JSON that OAuth's clients understand.
func (a *answer) denied(status int, name string) *answer {
	a.t.Helper()
	a.want(status)
	body := a.object()
	members(a.t, "an error", body, "type", "title", "status", "detail", "instance", "error", "error_description")
	same(a.t, a.call+": error and status", []any{body["error"], body["status"]}, []any{name, status})
	if description, _ := body["error_description"].(string); description == "" || strings.ContainsAny(description, `"\`) {
		a.t.Errorf("error_description is %q", description)
	}
	same(a.t, "Content-Type and Cache-Control", []string{a.header.Get("Content-Type"), a.header.Get("Cache-Control")}, []string{"application/json", "no-store"})
	if got, basic := a.header.Get("WWW-Authenticate"), status == 401; strings.HasPrefix(got, `Basic realm="`) != basic {
		a.t.Errorf("%s: %d with WWW-Authenticate %q", a.call, status, got)
	}
	return a
}

// withToken is the client with another token.
func (c *client) withToken(token string) *client {
	m := *c
	m.token = token
	return &m
}

func (a *answer) token() string {
	a.t.Helper()
	token, _ := a.want(200).object()["access_token"].(string)
	return token
}

func TestOAuthClients(t *testing.T) {
	cases{
		"a client is created with a secret that is shown once": func(t *testing.T, me *client) {
			a := me.call("POST", clients, map[string]any{"name": "Checkout backend", "scopes": []string{"projects:read", "flags:evaluate", "projects:read"}}).want(201)
			body := a.object()
			members(t, "the client", body, "clientId", "clientSecret", "name", "scopes", "createdAt")
			checkTimes(t, body)
			same(t, "name and scopes", []any{body["name"], body["scopes"]}, []any{"Checkout backend", []string{"projects:read", "flags:evaluate"}})
			same(t, "Location and Cache-Control", []string{a.header.Get("Location"), a.header.Get("Cache-Control")}, []string{clients + "/" + body["clientId"].(string), "no-store"})
			secret := body["clientSecret"].(string)
			if bits, err := base64.RawURLEncoding.DecodeString(secret); err != nil || len(bits) != 32 {
				t.Errorf("the secret has %d bytes: %v", len(bits), err)
			}
			delete(body, "clientSecret")
			list := me.call("GET", clients, nil).want(200)
			same(t, "the list", list.list(), []any{body})
			for e, err := range me.s.store().Read(t.Context(), events.TenantStream(me.tenant), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(e.Stored.Data), secret) || strings.Contains(string(e.Stored.Metadata), secret) {
					t.Errorf("a fact holds the secret: %s", e.Stored.Data)
				}
			}
		},
		"the list is in the order of creation, page by page, and of the tenant alone": func(t *testing.T, me *client) {
			me.newTenant("other").oauthClient("another's", "flags:read")
			same(t, "no clients", me.call("GET", clients, nil).want(200).list(), []any{})
			for i := range 3 {
				me.oauthClient(fmt.Sprint(i), "flags:read")
			}
			same(t, "names", column(me.call("GET", clients, nil).want(200).list(), "name"), []string{"0", "1", "2"})
			page := me.call("GET", clients+"?limit=1&offset=1", nil).want(200)
			same(t, "a page", []any{column(page.list(), "name"), page.header.Get("X-Total-Count")}, []any{[]string{"1"}, "3"})
		},
		"what is wrong with a client is named, all of it": func(_ *testing.T, me *client) {
			me.call("POST", clients, `{}`).refused(422, "name", "scopes")
			me.call("POST", clients, map[string]any{"name": strings.Repeat("x", 201), "scopes": []string{}}).refused(422, "name", "scopes")
			me.call("POST", clients, map[string]any{"name": "x", "scopes": []string{"flags:read", "flags:delete", "admin"}}).refused(422, "scopes[1]", "scopes[2]")
			me.call("POST", clients, `{"name":"x","scopes":"flags:read"}`).refused(422, "scopes")
			me.call("POST", clients, `{"name":"x","scopes":["flags:read"],"clientId":"mine","tenantId":"t"}`).refused(422, "clientId", "tenantId")
			me.call("POST", clients, `{"name":"x","scopes":["flags:read"]}`, "X-Tenant-ID", "").refused(400)
			if a := me.call("POST", clients, map[string]any{"name": "x", "scopes": slices.Repeat([]string{"nothing"}, 50_000)}).want(422); len(a.body) > 10_000 {
				me.s.t.Errorf("the answer has %d bytes", len(a.body))
			}
		},
		"another tenant's client does not exist": func(_ *testing.T, me *client) {
			id, secret := me.newTenant("other").oauthClient("another's", "flags:read")
			me.call("DELETE", clients+"/"+id, nil).refused(404)
			me.call("POST", clients+"/"+id+"/rotate", nil).refused(404)
			me.trade(credentials(id, secret)...).want(200)
		},
		"a client that is deleted is gone, with its secret and its tokens": func(t *testing.T, me *client) {
			me.createFlag("k", nil)
			id, secret := me.oauthClient("gone", "flags:read", "flags:evaluate")
			machine := me.withToken(me.trade(credentials(id, secret)...).token())
			machine.evaluate("k", `{}`).want(200)
			me.call("DELETE", clients+"/"+id, nil).want(204)
			machine.evaluate("k", `{}`).refused(401)
			machine.call("GET", "/api/v1/flags", nil).refused(401)
			me.trade(credentials(id, secret)...).denied(401, "invalid_client")
			me.call("DELETE", clients+"/"+id, nil).refused(404)
			me.call("POST", clients+"/"+id+"/rotate", nil).refused(404)
			same(t, "clients", me.call("GET", clients, nil).want(200).list(), []any{})
		},
		"a client that is deleted is refused on every node": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			id, secret := me.oauthClient("gone", "flags:evaluate")
			second := me.s.secondNode()
			there := me.withToken(me.trade(credentials(id, secret)...).token())
			there.s = second
			// Tokens bear the address of the service, which all nodes have.
			second.eventually("the other node knows the client", func() bool { return there.evaluate("k", `{}`).status == 200 })
			me.call("DELETE", clients+"/"+id, nil).want(204)
			second.eventually("the other node refuses its token", func() bool { return there.evaluate("k", `{}`).status == 401 })
			there.trade(credentials(id, secret)...).denied(401, "invalid_client")
		},
		"with its tenant a client ends": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			id, secret := me.oauthClient("x", "flags:evaluate")
			machine := me.withToken(me.trade(credentials(id, secret)...).token())
			machine.evaluate("k", `{}`).want(200)
			me.call("DELETE", "/api/v1/tenants/"+me.tenant, nil).want(204)
			machine.evaluate("k", `{}`).refused(401)
			me.trade(credentials(id, secret)...).denied(401, "invalid_client")
		},
		"a rotated client has a new secret and keeps the old one, and its tokens": func(t *testing.T, me *client) {
			id, old := me.oauthClient("x", "projects:read")
			machine := me.withToken(me.trade(credentials(id, old)...).token())
			a := me.call("POST", clients+"/"+id+"/rotate", nil).want(200)
			body := a.object()
			members(t, "the client", body, "clientId", "clientSecret", "name", "scopes", "createdAt")
			same(t, "the client", []any{body["clientId"], body["name"], body["scopes"], a.header.Get("Cache-Control")}, []any{id, "x", []string{"projects:read"}, "no-store"})
			if body["clientSecret"] == old {
				t.Error("the secret is the old one")
			}
			for _, secret := range []string{old, body["clientSecret"].(string)} {
				me.withToken(me.trade(credentials(id, secret)...).token()).call("GET", "/api/v1/projects", nil).want(200)
			}
			machine.call("GET", "/api/v1/projects", nil).want(200)
			for range 9 {
				me.call("POST", clients+"/"+id+"/rotate", nil).want(200)
			}
			me.call("POST", clients+"/"+id+"/rotate", nil).refused(409)
		},
		"the old paths serve the same and say what has replaced them": func(t *testing.T, me *client) {
			const old = "/api/oauth/clients"
			a := me.call("POST", old, `{"name":"x","scopes":["flags:read"]}`).want(201)
			checkLegacy(t, a)
			id := a.object()["clientId"].(string)
			list := me.call("GET", old, nil).want(200)
			checkLegacy(t, list)
			same(t, "clients", column(list.list(), "clientId"), []string{id})
			rotated := me.call("POST", old+"/"+id+"/rotate", nil).want(200)
			checkLegacy(t, rotated)
			same(t, "the successor", rotated.header.Get("Link"), "<"+clients+"/"+id+`/rotate>; rel="successor-version"`)
			form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {rotated.object()["clientSecret"].(string)}}
			token := me.s.anonymous().call("POST", "/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded").want(200)
			checkLegacy(t, token)
			me.withToken(token.token()).call("GET", "/api/v1/flags", nil).want(200)
			checkLegacy(t, me.s.anonymous().call("POST", "/oauth/token", "grant_type=x", "Content-Type", "application/x-www-form-urlencoded").denied(400, "unsupported_grant_type"))
			gone := me.call("DELETE", old+"/"+id, nil).want(204)
			checkLegacy(t, gone)
		},
		"a machine is shown in the history, also once it is gone": func(t *testing.T, me *client) {
			id, secret := me.oauthClient("Deployment <robot>", "flags:write", "flags:read")
			machine := me.withToken(me.trade(credentials(id, secret)...).token())
			machine.createFlag("k", nil)
			entry := machine.history("k", "")[0]
			want := []any{id, "Deployment <robot>", "client"}
			same(t, "who did it", []any{entry["userId"], entry["userName"], entry["actorType"]}, want)
			me.call("DELETE", clients+"/"+id, nil).want(204)
			entry = me.history("k", "?userId="+id)[0]
			same(t, "who did it", []any{entry["userId"], entry["userName"], entry["actorType"]}, want)
		},
	}.run(t)
}

func TestTokenEndpoint(t *testing.T) {
	const path, form = "/api/v1/oauth/token", "application/x-www-form-urlencoded"
	cases{
		"credentials are traded for a token for all scopes, or those asked for": func(t *testing.T, me *client) {
			id, secret := me.oauthClient("x", "flags:read", "projects:read", "flags:evaluate")
			for asked, want := range map[string]string{
				"": "flags:read projects:read flags:evaluate", "flags:evaluate": "flags:evaluate", "projects:read flags:read projects:read": "projects:read flags:read",
			} {
				a := me.trade(credentials(id, secret, "scope", asked)...).want(200)
				body := a.object()
				members(t, "the answer", body, "access_token", "token_type", "expires_in", "scope")
				same(t, "the answer", []any{body["token_type"], body["expires_in"], body["scope"]}, []any{"Bearer", 3600, want})
				same(t, "headers", []string{a.header.Get("Content-Type"), a.header.Get("Cache-Control")}, []string{"application/json", "no-store"})
			}
		},
		"a token is a signed JWT that anybody can verify": func(t *testing.T, me *client) {
			id, secret := me.oauthClient("x", "flags:read", "projects:read")
			before := time.Now().Truncate(time.Second)
			text := me.trade(credentials(id, secret)...).token()
			published := me.s.anonymous().call("GET", "/.well-known/jwks.json", nil).want(200)
			same(t, "headers", []string{published.header.Get("Content-Type"), published.header.Get("Cache-Control")}, []string{"application/json", "public, max-age=3600"})
			for _, key := range published.object()["keys"].([]any) {
				members(t, "a key", key, "kty", "kid", "alg", "use", "n", "e")
			}
			var keys jose.JSONWebKeySet
			published.decode(&keys)
			token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256})
			if err != nil {
				t.Fatal(err)
			}
			var said map[string]any
			if err := token.Claims(keys, &said); err != nil {
				t.Fatal(err)
			}
			header := token.Headers[0]
			same(t, "the header", []any{header.ExtraHeaders["typ"], header.KeyID}, []any{"at+jwt", keys.Keys[0].KeyID})
			members(t, "the claims", said, "iss", "aud", "sub", "jti", "iat", "exp", "client_id", "tenant_id", "scope")
			for name, want := range map[string]any{
				"iss": me.s.url, "aud": me.s.url, "sub": id, "client_id": id, "tenant_id": me.tenant, "scope": "flags:read projects:read", "exp": said["iat"].(float64) + 3600,
			} {
				same(t, name, said[name], want)
			}
			if at := time.Unix(int64(said["iat"].(float64)), 0); at.Before(before) || at.After(time.Now()) {
				t.Errorf("issued at %v", at)
			}
			if other := me.trade(credentials(id, secret)...).token(); other == text {
				t.Error("two tokens are the same")
			}
		},
		"credentials may come as HTTP Basic, percent-encoded": func(_ *testing.T, me *client) {
			id, secret := me.oauthClient("x", "flags:read")
			basic := func(user, password, body string) *answer {
				header := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
				return me.s.anonymous().call("POST", path, body, "Content-Type", form, "Authorization", header)
			}
			const grant = "grant_type=client_credentials"
			escaped := ""
			for _, b := range []byte(secret) {
				escaped += fmt.Sprintf("%%%02X", b)
			}
			basic(id, secret, grant).want(200)
			basic(id, escaped, grant).want(200)
			basic(strings.ReplaceAll(id, "-", "%2d"), secret, grant).want(200)
			basic(id, secret, grant+"&client_id="+id).want(200)
			basic(id, secret, grant+"&client_secret=").want(200)
			basic(id, secret+"x", grant).denied(401, "invalid_client")
			basic(id, "", grant).denied(401, "invalid_client")
			basic(id, secret+"%zz", grant).denied(401, "invalid_client")
			basic(id, secret, grant+"&client_secret="+secret).denied(400, "invalid_request")
			basic(id, secret, grant+"&client_id=other").denied(400, "invalid_request")
			for _, header := range []string{"Basic", "Basic !", "basic " + base64.StdEncoding.EncodeToString([]byte("no colon"))} {
				me.s.anonymous().call("POST", path, grant, "Content-Type", form, "Authorization", header).denied(401, "invalid_client")
			}
			me.call("POST", path, url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode(), "Content-Type", form).want(200) // beside a bearer token
		},
		"what is wrong is told in OAuth's words": func(_ *testing.T, me *client) {
			id, secret := me.oauthClient("x", "flags:read", "flags:evaluate")
			good := credentials(id, secret)
			me.trade().denied(400, "invalid_request")
			me.trade("grant_type", "").denied(400, "invalid_request")
			me.trade("grant_type", "password", "client_id", id, "client_secret", secret).denied(400, "unsupported_grant_type")
			me.trade("grant_type", "client_credentials").denied(401, "invalid_client")
			me.trade(good[:4]...).denied(401, "invalid_client")
			me.trade(credentials(id, secret+"x")...).denied(401, "invalid_client")
			me.trade(credentials(id, "")...).denied(401, "invalid_client")
			me.trade(credentials(uuid.NewString(), secret)...).denied(401, "invalid_client")
			me.trade(credentials("\x00\xff", secret)...).denied(401, "invalid_client")
			for _, scope := range []string{"flags:write", "flags:read flags:write", "everything", "FLAGS:READ", " ", "flags:read  flags:evaluate", "flags:read,flags:evaluate", "flags:read\tflags:evaluate", `"\`} {
				me.trade(append(good, "scope", scope)...).denied(400, "invalid_scope")
			}
			for _, name := range []string{"grant_type", "client_id", "client_secret", "scope"} {
				me.trade(append(good, "scope", "flags:read", name, "again")...).denied(400, "invalid_request")
			}
			me.trade(append(good, "audience", "x", "audience", "y", "resource", "")...).want(200)
			send := func(body string, headers ...string) *answer {
				return me.s.anonymous().call("POST", path, body, append([]string{"Content-Type", form}, headers...)...)
			}
			send("grant_type=%zz").denied(400, "invalid_request")
			send("grant_type=client_credentials;client_id="+id).denied(400, "invalid_request")
			send(strings.Repeat("x", 1<<20+1)).denied(400, "invalid_request")
			send("grant_type=x", "X-Correlation-ID", strings.Repeat("x", 200)).denied(400, "invalid_request")
			for _, media := range []string{"application/json", "text/plain", "multipart/form-data; boundary=x", ""} {
				send("grant_type=client_credentials", "Content-Type", media).denied(415, "invalid_request")
			}
			send(url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode(), "Content-Type", "Application/X-WWW-Form-URLEncoded; charset=utf-8").want(200)
			me.s.anonymous().call("GET", path, nil).denied(405, "invalid_request")
		},
		"credentials are not taken from the URL": func(_ *testing.T, me *client) {
			id, secret := me.oauthClient("x", "flags:read")
			query := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode()
			me.s.anonymous().call("POST", path+"?"+query, "grant_type=client_credentials", "Content-Type", form).denied(400, "invalid_request")
			me.s.anonymous().call("POST", path+"?client_secret="+secret, "grant_type=client_credentials&client_id="+id, "Content-Type", form).denied(400, "invalid_request")
			me.s.anonymous().call("POST", path+"?trace=1", query, "Content-Type", form).want(200)
		},
		"guessing ends with 429, and does not keep the client out": func(t *testing.T, me *client) {
			id, secret := me.oauthClient("x", "flags:read")
			count := map[int]int{}
			for range 50 {
				count[me.trade(credentials(id, "guess")...).status]++
			}
			if count[401] == 0 || count[429] == 0 || count[401]+count[429] != 50 {
				t.Errorf("50 guesses are answered with %v", count)
			}
			a := me.trade(credentials(id, "guess")...).denied(429, "temporarily_unavailable")
			if a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			me.trade(credentials(id, secret)...).want(200)
		},
	}.run(t)
}

func TestMachineAccess(t *testing.T) {
	cases{
		"a token is good for the scopes that it was asked for, of those that the client has": func(t *testing.T, me *client) {
			id, secret := me.oauthClient("x", scopes...)
			reader := me.withToken(me.trade(credentials(id, secret, "scope", "flags:read projects:read")...).token())
			reader.call("GET", "/api/v1/flags", nil).want(200)
			reader.call("GET", "/api/v1/projects", nil).want(200)
			a := reader.call("POST", "/api/v1/projects", `{"name":"x"}`).refused(403)
			same(t, "WWW-Authenticate", a.header.Get("WWW-Authenticate"), `Bearer error="insufficient_scope", scope="projects:write"`)
			reader.call("GET", "/api/v1/tenants", nil).refused(403)
			reader.call("POST", "/api/v1/auth/logout", nil).refused(403)
			me.withToken(me.trade(credentials(id, secret)...).token()).createProject("x")
		},
		"the document tells the scope of each operation": func(t *testing.T, me *client) {
			_, operations := me.document()
			for name, operation := range operations {
				var scopes []any
				ways, _ := operation["security"].([]any)
				for _, way := range ways {
					if oauth, ok := way.(map[string]any)["oauth"].([]any); ok {
						scopes = oauth
					}
				}
				var want []any
				if scope := scopeOf(name); scope != "" {
					want = []any{scope}
				}
				same(t, name, scopes, want)
			}
		},
		"a machine's own tenant is that of its calls": func(t *testing.T, me *client) {
			machine := me.machine(scopes...)
			machine.createProject("mine")
			machine.tenant = ""
			same(t, "projects", column(machine.call("GET", "/api/v1/projects", nil, "X-Tenant-ID", me.tenant).want(200).list(), "name"), []string{"mine"})
			machine.call("POST", "/api/v1/projects", `{"name":"by default"}`).want(201)
			same(t, "projects", column(me.call("GET", "/api/v1/projects", nil).want(200).list(), "name"), []string{"mine", "by default"})
			machine.call("GET", "/api/v1/projects", nil).refused(400) // where it must be sent, it must
			machine.call("POST", flagPath("k", "/evaluate"), `{}`).refused(400)
		},
		"a machine may enter no other tenant, whether that exists or not": func(t *testing.T, me *client) {
			other := me.newTenant("other")
			other.createFlag("k", nil)
			project, _ := other.createProject("p")
			machine := me.machine(scopes...)
			for _, tenant := range []string{other.tenant, uuid.NewString(), "x"} {
				machine.tenant = tenant
				machine.call("GET", "/api/v1/flags", nil).refused(403)
				machine.call("GET", flagPath("k"), nil).refused(403)
				machine.evaluate("k", `{}`).refused(403)
				machine.call("POST", flagPath("k", "/enable"), nil).refused(403)
				machine.call("POST", "/api/v1/flags", `{"key":"n","type":"boolean"}`).refused(403)
				machine.call("POST", "/api/v1/projects", `{"name":"n"}`).refused(403)
			}
			machine.tenant = me.tenant
			machine.call("GET", flagPath("k"), nil).refused(404)
			machine.evaluate("k", `{}`).refused(404)
			machine.call("GET", "/api/v1/projects/"+project, nil).refused(404)
			same(t, "the flag", other.call("GET", flagPath("k"), nil).want(200).object()["version"], 1)
		},
		"tokens are for what they are": func(_ *testing.T, me *client) {
			machine := me.machine(scopes...)
			me.s.anonymous().call("POST", "/api/v1/auth/login", map[string]string{"idToken": machine.token}).refused(401)
			me.s.anonymous().call("POST", "/api/v1/auth/signup", map[string]string{"idToken": machine.token}).refused(401)
			me.s.anonymous().call("GET", "/api/v1/flags", nil, "Authorization", "Basic "+machine.token, "X-Tenant-ID", me.tenant).refused(401)
		},
		"forged tokens are refused": func(t *testing.T, me *client) {
			machine := me.machine(scopes...)
			machine.call("GET", "/api/v1/flags", nil).want(200)
			for what, token := range forgedTokens(t, machine) {
				a := machine.withToken(token).call("GET", "/api/v1/flags", nil)
				if what == "as the service signs it" {
					a.want(200)
				} else if a.status != 401 {
					t.Errorf("%s: %d %s", what, a.status, a.body)
				} else {
					a.refused(401)
				}
			}
		},
	}.run(t)
}

// forgedTokens are variants of a machine's token, by what is wrong with them, beside those that are wrong of any token.
func forgedTokens(t *testing.T, machine *client) map[string]string {
	t.Helper()
	f := newForger(t, machine.s, machine.token)
	headed := func(name string, value any) string {
		other := f
		other.header = maps.Clone(f.header)
		if other.header[name] = value; value == nil {
			delete(other.header, name)
		}
		return other.sign(jose.RS256, f.key, f.claims)
	}
	stranger := uuid.NewString()
	strangers := maps.Clone(f.claims)
	strangers["sub"], strangers["client_id"] = stranger, stranger
	return map[string]string{
		"as the service signs it":    f.with("jti", "another"),
		"PS256":                      f.sign(jose.PS256, f.key, f.claims),
		"a key that is not known":    headed("kid", stranger),
		"no key":                     headed("kid", ""),
		"an ID token":                headed("typ", "JWT"),
		"a token of no kind":         headed("typ", nil),
		"another spelling":           machine.token + "=",
		"for those ID tokens are":    f.with("aud", "flagledger"),
		"for nobody":                 f.with("aud", nil),
		"no expiry":                  f.with("exp", nil),
		"not valid yet":              f.with("nbf", time.Now().Add(time.Minute).Unix()),
		"no client":                  f.with("client_id", nil),
		"another subject":            f.with("sub", stranger),
		"a client that is not known": f.sign(jose.RS256, f.key, strangers),
		"no tenant":                  f.with("tenant_id", nil),
		"another tenant":             f.with("tenant_id", stranger),
		"scopes of another type":     f.with("scope", scopes),
	}
}

// clock is a time that a test moves.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

func TestOAuthInTime(t *testing.T) {
	t.Parallel()
	c := &clock{}
	s := serviceWith(t, pgtest.URL(t), config{EventStoreURL: engineURL(t), Environment: "development", now: c.now}, testLog(t))
	me := s.signUp("me@example.com")
	id, first := me.oauthClient("x", "flags:read")
	second := me.call("POST", clients+"/"+id+"/rotate", nil).want(200).object()["clientSecret"].(string)

	machine := me.withToken(me.trade(credentials(id, first)...).token())
	c.add(59 * time.Minute)
	machine.call("GET", "/api/v1/flags", nil).want(200)
	c.add(2 * time.Minute)
	machine.call("GET", "/api/v1/flags", nil).refused(401)
	machine.call("GET", "/api/v1/flags", nil).refused(401)

	c.add(24*time.Hour - 62*time.Minute)
	me.trade(credentials(id, first)...).want(200)
	c.add(2 * time.Minute)
	me.trade(credentials(id, first)...).denied(401, "invalid_client")
	me.trade(credentials(id, second)...).want(200)

	// A node that starts when a key is due publishes the next one, which signs a day later.
	keys := func(s *service) []any {
		return s.anonymous().call("GET", "/.well-known/jwks.json", nil).want(200).object()["keys"].([]any)
	}
	c.add(29 * 24 * time.Hour)
	there := s.secondNode()
	same(t, "keys", len(keys(there)), 2)
	trade := func(s *service) (kid any) {
		t.Helper()
		on := *me
		on.s = s
		token := on.trade(credentials(id, second)...).token()
		s.eventually("the token works", func() bool { return on.withToken(token).call("GET", "/api/v1/flags", nil).status == 200 })
		var header map[string]any
		text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[0])
		if err == nil {
			err = json.Unmarshal(text, &header)
		}
		if err != nil {
			t.Fatal(err)
		}
		return header["kid"]
	}
	newest := keys(there)[0].(map[string]any)["kid"]
	if trade(there) == newest {
		t.Error("the next key signs as soon as it is published")
	}
	c.add(25 * time.Hour)
	same(t, "who signs", trade(there), newest)
	on := *me
	on.token = me.withTokenOf(there, id, second)
	on.call("GET", "/api/v1/flags", nil).want(200) // on the first node, which reads the keys again when it meets a new one
}

// withTokenOf is a token that a node issues.
func (c *client) withTokenOf(s *service, id, secret string) string {
	c.s.t.Helper()
	on := *c
	on.s = s
	return on.trade(credentials(id, secret)...).token()
}
