package http_test

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

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

const clients = "/api/v1/oauth/clients"

// denied checks that an answer is an error of the token endpoint: a problem in JSON that OAuth's clients understand.
func denied(a *nodetest.Answer, status int, name string) *nodetest.Answer {
	a.T.Helper()
	a.Want(status)
	body := a.Object()
	nodetest.Members(a.T, "an error", body, "type", "title", "status", "detail", "instance", "error", "error_description")
	nodetest.Same(a.T, a.Call+": error and status", []any{body["error"], body["status"]}, []any{name, status})
	if description, _ := body["error_description"].(string); description == "" || strings.ContainsAny(description, `"\`) {
		a.T.Errorf("error_description is %q", description)
	}
	nodetest.Same(a.T, "Content-Type and Cache-Control", []string{a.Header.Get("Content-Type"), a.Header.Get("Cache-Control")}, []string{"application/json", "no-store"})
	if got, basic := a.Header.Get("WWW-Authenticate"), status == 401; strings.HasPrefix(got, `Basic realm="`) != basic {
		a.T.Errorf("%s: %d with WWW-Authenticate %q", a.Call, status, got)
	}
	return a
}

func accessToken(a *nodetest.Answer) string {
	a.T.Helper()
	token, _ := a.Want(200).Object()["access_token"].(string)
	return token
}

func TestOAuthClients(t *testing.T) {
	nodetest.Cases{
		"a client is created with a secret that is shown once": func(t *testing.T, me *nodetest.Client) {
			a := me.Call("POST", clients, map[string]any{"name": "Checkout backend", "scopes": []string{"projects:read", "flags:evaluate", "projects:read"}}).Want(201)
			body := a.Object()
			nodetest.Members(t, "the client", body, "clientId", "clientSecret", "name", "scopes", "createdAt")
			checkTimes(t, body)
			nodetest.Same(t, "name and scopes", []any{body["name"], body["scopes"]}, []any{"Checkout backend", []string{"projects:read", "flags:evaluate"}})
			nodetest.Same(t, "Location and Cache-Control", []string{a.Header.Get("Location"), a.Header.Get("Cache-Control")}, []string{clients + "/" + body["clientId"].(string), "no-store"})
			secret := body["clientSecret"].(string)
			if bits, err := base64.RawURLEncoding.DecodeString(secret); err != nil || len(bits) != 32 {
				t.Errorf("the secret has %d bytes: %v", len(bits), err)
			}
			delete(body, "clientSecret")
			list := me.Call("GET", clients, nil).Want(200)
			nodetest.Same(t, "the list", list.List(), []any{body})
			for e, err := range me.Service.Store().Read(t.Context(), events.TenantStream(me.Tenant), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(e.Stored.Data), secret) || strings.Contains(string(e.Stored.Metadata), secret) {
					t.Errorf("a fact holds the secret: %s", e.Stored.Data)
				}
			}
		},
		"the list is in the order of creation, page by page, and of the tenant alone": func(t *testing.T, me *nodetest.Client) {
			me.NewTenant("other").OAuthClient("another's", "flags:read")
			nodetest.Same(t, "no clients", me.Call("GET", clients, nil).Want(200).List(), []any{})
			for i := range 3 {
				me.OAuthClient(fmt.Sprint(i), "flags:read")
			}
			nodetest.Same(t, "names", nodetest.Column(me.Call("GET", clients, nil).Want(200).List(), "name"), []string{"0", "1", "2"})
			page := me.Call("GET", clients+"?limit=1&offset=1", nil).Want(200)
			nodetest.Same(t, "a page", []any{nodetest.Column(page.List(), "name"), page.Header.Get("X-Total-Count")}, []any{[]string{"1"}, "3"})
		},
		"what is wrong with a client is named, all of it": func(_ *testing.T, me *nodetest.Client) {
			me.Call("POST", clients, `{}`).Refused(422, "name", "scopes")
			me.Call("POST", clients, map[string]any{"name": strings.Repeat("x", 201), "scopes": []string{}}).Refused(422, "name", "scopes")
			me.Call("POST", clients, map[string]any{"name": "x", "scopes": []string{"flags:read", "flags:delete", "admin"}}).Refused(422, "scopes[1]", "scopes[2]")
			me.Call("POST", clients, `{"name":"x","scopes":"flags:read"}`).Refused(422, "scopes")
			me.Call("POST", clients, `{"name":"x","scopes":["flags:read"],"clientId":"mine","tenantId":"t"}`).Refused(422, "clientId", "tenantId")
			me.Call("POST", clients, `{"name":"x","scopes":["flags:read"]}`, "X-Tenant-ID", "").Refused(400)
			if a := me.Call("POST", clients, map[string]any{"name": "x", "scopes": slices.Repeat([]string{"nothing"}, 50_000)}).Want(422); len(a.Body) > 10_000 {
				me.Service.T.Errorf("the answer has %d bytes", len(a.Body))
			}
		},
		"another tenant's client does not exist": func(_ *testing.T, me *nodetest.Client) {
			id, secret := me.NewTenant("other").OAuthClient("another's", "flags:read")
			me.Call("DELETE", clients+"/"+id, nil).Refused(404)
			me.Call("POST", clients+"/"+id+"/rotate", nil).Refused(404)
			me.Trade(nodetest.Credentials(id, secret)...).Want(200)
		},
		"a client that is deleted is gone, with its secret and its tokens": func(t *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			id, secret := me.OAuthClient("gone", "flags:read", "flags:evaluate")
			machine := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, secret)...)))
			machine.Evaluate("k", `{}`).Want(200)
			me.Call("DELETE", clients+"/"+id, nil).Want(204)
			machine.Evaluate("k", `{}`).Refused(401)
			machine.Call("GET", "/api/v1/flags", nil).Refused(401)
			denied(me.Trade(nodetest.Credentials(id, secret)...), 401, "invalid_client")
			me.Call("DELETE", clients+"/"+id, nil).Refused(404)
			me.Call("POST", clients+"/"+id+"/rotate", nil).Refused(404)
			nodetest.Same(t, "clients", me.Call("GET", clients, nil).Want(200).List(), []any{})
		},
		"a client that is deleted is refused on every node": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			id, secret := me.OAuthClient("gone", "flags:evaluate")
			second := me.Service.SecondNode()
			there := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, secret)...)))
			there.Service = second
			// Tokens bear the address of the service, which all nodes have.
			second.Eventually("the other node knows the client", func() bool { return there.Evaluate("k", `{}`).Status == 200 })
			me.Call("DELETE", clients+"/"+id, nil).Want(204)
			second.Eventually("the other node refuses its token", func() bool { return there.Evaluate("k", `{}`).Status == 401 })
			denied(there.Trade(nodetest.Credentials(id, secret)...), 401, "invalid_client")
		},
		"with its tenant a client ends": func(_ *testing.T, me *nodetest.Client) {
			me.CreateFlag("k", nil)
			id, secret := me.OAuthClient("x", "flags:evaluate")
			machine := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, secret)...)))
			machine.Evaluate("k", `{}`).Want(200)
			me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
			machine.Evaluate("k", `{}`).Refused(401)
			denied(me.Trade(nodetest.Credentials(id, secret)...), 401, "invalid_client")
		},
		"a rotated client has a new secret and keeps the old one, and its tokens": func(t *testing.T, me *nodetest.Client) {
			id, old := me.OAuthClient("x", "projects:read")
			machine := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, old)...)))
			a := me.Call("POST", clients+"/"+id+"/rotate", nil).Want(200)
			body := a.Object()
			nodetest.Members(t, "the client", body, "clientId", "clientSecret", "name", "scopes", "createdAt")
			nodetest.Same(t, "the client", []any{body["clientId"], body["name"], body["scopes"], a.Header.Get("Cache-Control")}, []any{id, "x", []string{"projects:read"}, "no-store"})
			if body["clientSecret"] == old {
				t.Error("the secret is the old one")
			}
			for _, secret := range []string{old, body["clientSecret"].(string)} {
				me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, secret)...))).Call("GET", "/api/v1/projects", nil).Want(200)
			}
			machine.Call("GET", "/api/v1/projects", nil).Want(200)
			for range 9 {
				me.Call("POST", clients+"/"+id+"/rotate", nil).Want(200)
			}
			me.Call("POST", clients+"/"+id+"/rotate", nil).Refused(409)
		},
		"the old paths serve the same and say what has replaced them": func(t *testing.T, me *nodetest.Client) {
			const old = "/api/oauth/clients"
			a := me.Call("POST", old, `{"name":"x","scopes":["flags:read"]}`).Want(201)
			checkLegacy(t, a)
			id := a.Object()["clientId"].(string)
			list := me.Call("GET", old, nil).Want(200)
			checkLegacy(t, list)
			nodetest.Same(t, "clients", nodetest.Column(list.List(), "clientId"), []string{id})
			rotated := me.Call("POST", old+"/"+id+"/rotate", nil).Want(200)
			checkLegacy(t, rotated)
			nodetest.Same(t, "the successor", rotated.Header.Get("Link"), "<"+clients+"/"+id+`/rotate>; rel="successor-version"`)
			form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {rotated.Object()["clientSecret"].(string)}}
			token := me.Service.Anonymous().Call("POST", "/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded").Want(200)
			checkLegacy(t, token)
			me.WithToken(accessToken(token)).Call("GET", "/api/v1/flags", nil).Want(200)
			checkLegacy(t, denied(me.Service.Anonymous().Call("POST", "/oauth/token", "grant_type=x", "Content-Type", "application/x-www-form-urlencoded"), 400, "unsupported_grant_type"))
			gone := me.Call("DELETE", old+"/"+id, nil).Want(204)
			checkLegacy(t, gone)
		},
		"a machine is shown in the history, also once it is gone": func(t *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("Deployment <robot>", "flags:write", "flags:read")
			machine := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, secret)...)))
			machine.CreateFlag("k", nil)
			entry := machine.History("k", "")[0]
			want := []any{id, "Deployment <robot>", "client"}
			nodetest.Same(t, "who did it", []any{entry["userId"], entry["userName"], entry["actorType"]}, want)
			me.Call("DELETE", clients+"/"+id, nil).Want(204)
			entry = me.History("k", "?userId="+id)[0]
			nodetest.Same(t, "who did it", []any{entry["userId"], entry["userName"], entry["actorType"]}, want)
		},
	}.Run(t)
}

func TestTokenEndpoint(t *testing.T) {
	const path, form = "/api/v1/oauth/token", "application/x-www-form-urlencoded"
	nodetest.Cases{
		"credentials are traded for a token for all scopes, or those asked for": func(t *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read", "projects:read", "flags:evaluate")
			for asked, want := range map[string]string{
				"": "flags:read projects:read flags:evaluate", "flags:evaluate": "flags:evaluate", "projects:read flags:read projects:read": "projects:read flags:read",
			} {
				a := me.Trade(nodetest.Credentials(id, secret, "scope", asked)...).Want(200)
				body := a.Object()
				nodetest.Members(t, "the answer", body, "access_token", "token_type", "expires_in", "scope")
				nodetest.Same(t, "the answer", []any{body["token_type"], body["expires_in"], body["scope"]}, []any{"Bearer", 3600, want})
				nodetest.Same(t, "headers", []string{a.Header.Get("Content-Type"), a.Header.Get("Cache-Control")}, []string{"application/json", "no-store"})
			}
		},
		"a token is a signed JWT that anybody can verify": func(t *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read", "projects:read")
			before := time.Now().Truncate(time.Second)
			text := accessToken(me.Trade(nodetest.Credentials(id, secret)...))
			published := me.Service.Anonymous().Call("GET", "/.well-known/jwks.json", nil).Want(200)
			nodetest.Same(t, "headers", []string{published.Header.Get("Content-Type"), published.Header.Get("Cache-Control")}, []string{"application/json", "public, max-age=3600"})
			for _, key := range published.Object()["keys"].([]any) {
				nodetest.Members(t, "a key", key, "kty", "kid", "alg", "use", "n", "e")
			}
			var keys jose.JSONWebKeySet
			published.Decode(&keys)
			token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256})
			if err != nil {
				t.Fatal(err)
			}
			var claims map[string]any
			if err := token.Claims(keys, &claims); err != nil {
				t.Fatal(err)
			}
			header := token.Headers[0]
			nodetest.Same(t, "the header", []any{header.ExtraHeaders["typ"], header.KeyID}, []any{"at+jwt", keys.Keys[0].KeyID})
			nodetest.Members(t, "the claims", claims, "iss", "aud", "sub", "jti", "iat", "exp", "client_id", "tenant_id", "scope")
			for name, want := range map[string]any{
				"iss": me.Service.URL, "aud": me.Service.URL, "sub": id, "client_id": id, "tenant_id": me.Tenant, "scope": "flags:read projects:read", "exp": claims["iat"].(float64) + 3600,
			} {
				nodetest.Same(t, name, claims[name], want)
			}
			if at := time.Unix(int64(claims["iat"].(float64)), 0); at.Before(before) || at.After(time.Now()) {
				t.Errorf("issued at %v", at)
			}
			if other := accessToken(me.Trade(nodetest.Credentials(id, secret)...)); other == text {
				t.Error("two tokens are the same")
			}
		},
		"credentials may come as HTTP Basic, percent-encoded": func(_ *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read")
			basic := func(user, password, body string) *nodetest.Answer {
				header := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
				return me.Service.Anonymous().Call("POST", path, body, "Content-Type", form, "Authorization", header)
			}
			const grant = "grant_type=client_credentials"
			escaped := ""
			for _, b := range []byte(secret) {
				escaped += fmt.Sprintf("%%%02X", b)
			}
			basic(id, secret, grant).Want(200)
			basic(id, escaped, grant).Want(200)
			basic(strings.ReplaceAll(id, "-", "%2d"), secret, grant).Want(200)
			basic(id, secret, grant+"&client_id="+id).Want(200)
			basic(id, secret, grant+"&client_secret=").Want(200)
			denied(basic(id, secret+"x", grant), 401, "invalid_client")
			denied(basic(id, "", grant), 401, "invalid_client")
			denied(basic(id, secret+"%zz", grant), 401, "invalid_client")
			denied(basic(id, secret, grant+"&client_secret="+secret), 400, "invalid_request")
			denied(basic(id, secret, grant+"&client_id=other"), 400, "invalid_request")
			for _, header := range []string{"Basic", "Basic !", "basic " + base64.StdEncoding.EncodeToString([]byte("no colon"))} {
				denied(me.Service.Anonymous().Call("POST", path, grant, "Content-Type", form, "Authorization", header), 401, "invalid_client")
			}
			me.Call("POST", path, url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode(), "Content-Type", form).Want(200) // beside a bearer token
		},
		"what is wrong is told in OAuth's words": func(_ *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read", "flags:evaluate")
			good := nodetest.Credentials(id, secret)
			denied(me.Trade(), 400, "invalid_request")
			denied(me.Trade("grant_type", ""), 400, "invalid_request")
			denied(me.Trade("grant_type", "password", "client_id", id, "client_secret", secret), 400, "unsupported_grant_type")
			denied(me.Trade("grant_type", "client_credentials"), 401, "invalid_client")
			denied(me.Trade(good[:4]...), 401, "invalid_client")
			denied(me.Trade(nodetest.Credentials(id, secret+"x")...), 401, "invalid_client")
			denied(me.Trade(nodetest.Credentials(id, "")...), 401, "invalid_client")
			denied(me.Trade(nodetest.Credentials(uuid.NewString(), secret)...), 401, "invalid_client")
			denied(me.Trade(nodetest.Credentials("\x00\xff", secret)...), 401, "invalid_client")
			for _, scope := range []string{"flags:write", "flags:read flags:write", "everything", "FLAGS:READ", " ", "flags:read  flags:evaluate", "flags:read,flags:evaluate", "flags:read\tflags:evaluate", `"\`} {
				denied(me.Trade(append(good, "scope", scope)...), 400, "invalid_scope")
			}
			for _, name := range []string{"grant_type", "client_id", "client_secret", "scope"} {
				denied(me.Trade(append(good, "scope", "flags:read", name, "again")...), 400, "invalid_request")
			}
			me.Trade(append(good, "audience", "x", "audience", "y", "resource", "")...).Want(200)
			send := func(body string, headers ...string) *nodetest.Answer {
				return me.Service.Anonymous().Call("POST", path, body, append([]string{"Content-Type", form}, headers...)...)
			}
			denied(send("grant_type=%zz"), 400, "invalid_request")
			denied(send("grant_type=client_credentials;client_id="+id), 400, "invalid_request")
			denied(send(strings.Repeat("x", 1<<20+1)), 400, "invalid_request")
			denied(send("grant_type=x", "X-Correlation-ID", strings.Repeat("x", 200)), 400, "invalid_request")
			for _, media := range []string{"application/json", "text/plain", "multipart/form-data; boundary=x", ""} {
				denied(send("grant_type=client_credentials", "Content-Type", media), 415, "invalid_request")
			}
			send(url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode(), "Content-Type", "Application/X-WWW-Form-URLEncoded; charset=utf-8").Want(200)
			denied(me.Service.Anonymous().Call("GET", path, nil), 405, "invalid_request")
		},
		"credentials are not taken from the URL": func(_ *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read")
			query := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}.Encode()
			denied(me.Service.Anonymous().Call("POST", path+"?"+query, "grant_type=client_credentials", "Content-Type", form), 400, "invalid_request")
			denied(me.Service.Anonymous().Call("POST", path+"?client_secret="+secret, "grant_type=client_credentials&client_id="+id, "Content-Type", form), 400, "invalid_request")
			me.Service.Anonymous().Call("POST", path+"?trace=1", query, "Content-Type", form).Want(200)
		},
		"guessing ends with 429, and does not keep the client out": func(t *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", "flags:read")
			count := map[int]int{}
			for range 50 {
				count[me.Trade(nodetest.Credentials(id, "guess")...).Status]++
			}
			if count[401] == 0 || count[429] == 0 || count[401]+count[429] != 50 {
				t.Errorf("50 guesses are answered with %v", count)
			}
			a := denied(me.Trade(nodetest.Credentials(id, "guess")...), 429, "temporarily_unavailable")
			if a.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			me.Trade(nodetest.Credentials(id, secret)...).Want(200)
		},
	}.Run(t)
}

func TestMachineAccess(t *testing.T) {
	nodetest.Cases{
		"a token is good for the scopes that it was asked for, of those that the client has": func(t *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", scopes...)
			reader := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, secret, "scope", "flags:read projects:read")...)))
			reader.Call("GET", "/api/v1/flags", nil).Want(200)
			reader.Call("GET", "/api/v1/projects", nil).Want(200)
			a := reader.Call("POST", "/api/v1/projects", `{"name":"x"}`).Refused(403)
			nodetest.Same(t, "WWW-Authenticate", a.Header.Get("WWW-Authenticate"), `Bearer error="insufficient_scope", scope="projects:write"`)
			reader.Call("GET", "/api/v1/tenants", nil).Refused(403)
			reader.Call("POST", "/api/v1/auth/logout", nil).Refused(403)
			me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, secret)...))).CreateProject("x")
		},
		"the document tells the scope of each operation": func(t *testing.T, me *nodetest.Client) {
			_, operations := me.Document()
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
				nodetest.Same(t, name, scopes, want)
			}
		},
		"a machine's own tenant is that of its calls": func(t *testing.T, me *nodetest.Client) {
			machine := me.Machine(scopes...)
			machine.CreateProject("mine")
			machine.Tenant = ""
			nodetest.Same(t, "projects", nodetest.Column(machine.Call("GET", "/api/v1/projects", nil, "X-Tenant-ID", me.Tenant).Want(200).List(), "name"), []string{"mine"})
			machine.Call("POST", "/api/v1/projects", `{"name":"by default"}`).Want(201)
			nodetest.Same(t, "projects", nodetest.Column(me.Call("GET", "/api/v1/projects", nil).Want(200).List(), "name"), []string{"mine", "by default"})
			machine.Call("GET", "/api/v1/projects", nil).Refused(400) // where it must be sent, it must
			machine.Call("POST", nodetest.FlagPath("k", "/evaluate"), `{}`).Refused(400)
		},
		"a machine may enter no other tenant, whether that exists or not": func(t *testing.T, me *nodetest.Client) {
			other := me.NewTenant("other")
			other.CreateFlag("k", nil)
			project, _ := other.CreateProject("p")
			machine := me.Machine(scopes...)
			for _, tenant := range []string{other.Tenant, uuid.NewString(), "x"} {
				machine.Tenant = tenant
				machine.Call("GET", "/api/v1/flags", nil).Refused(403)
				machine.Call("GET", nodetest.FlagPath("k"), nil).Refused(403)
				machine.Evaluate("k", `{}`).Refused(403)
				machine.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Refused(403)
				machine.Call("POST", "/api/v1/flags", `{"key":"n","type":"boolean"}`).Refused(403)
				machine.Call("POST", "/api/v1/projects", `{"name":"n"}`).Refused(403)
			}
			machine.Tenant = me.Tenant
			machine.Call("GET", nodetest.FlagPath("k"), nil).Refused(404)
			machine.Evaluate("k", `{}`).Refused(404)
			machine.Call("GET", "/api/v1/projects/"+project, nil).Refused(404)
			nodetest.Same(t, "the flag", other.Call("GET", nodetest.FlagPath("k"), nil).Want(200).Object()["version"], 1)
		},
		"tokens are for what they are": func(_ *testing.T, me *nodetest.Client) {
			machine := me.Machine(scopes...)
			me.Service.Anonymous().Call("POST", "/api/v1/auth/login", map[string]string{"idToken": machine.Token}).Refused(401)
			me.Service.Anonymous().Call("POST", "/api/v1/auth/signup", map[string]string{"idToken": machine.Token}).Refused(401)
			me.Service.Anonymous().Call("GET", "/api/v1/flags", nil, "Authorization", "Basic "+machine.Token, "X-Tenant-ID", me.Tenant).Refused(401)
		},
		"forged tokens are refused": func(t *testing.T, me *nodetest.Client) {
			machine := me.Machine(scopes...)
			machine.Call("GET", "/api/v1/flags", nil).Want(200)
			for what, token := range forgedTokens(t, machine) {
				a := machine.WithToken(token).Call("GET", "/api/v1/flags", nil)
				if what == "as the service signs it" {
					a.Want(200)
				} else if a.Status != 401 {
					t.Errorf("%s: %d %s", what, a.Status, a.Body)
				} else {
					a.Refused(401)
				}
			}
		},
	}.Run(t)
}

// forgedTokens are variants of a machine's token, by what is wrong with them, beside those that are wrong of any token.
func forgedTokens(t *testing.T, machine *nodetest.Client) map[string]string {
	t.Helper()
	f := newForger(t, machine.Service, machine.Token)
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
		"another spelling":           machine.Token + "=",
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
	s := nodetest.Start(t, nodetest.Database(t), node.Config{EventStoreURL: nodetest.EngineURL(t), Environment: "development", Now: c.now}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	id, first := me.OAuthClient("x", "flags:read")
	second := me.Call("POST", clients+"/"+id+"/rotate", nil).Want(200).Object()["clientSecret"].(string)

	machine := me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, first)...)))
	c.add(59 * time.Minute)
	machine.Call("GET", "/api/v1/flags", nil).Want(200)
	c.add(2 * time.Minute)
	machine.Call("GET", "/api/v1/flags", nil).Refused(401)
	machine.Call("GET", "/api/v1/flags", nil).Refused(401)

	c.add(24*time.Hour - 62*time.Minute)
	me.Trade(nodetest.Credentials(id, first)...).Want(200)
	c.add(2 * time.Minute)
	denied(me.Trade(nodetest.Credentials(id, first)...), 401, "invalid_client")
	me.Trade(nodetest.Credentials(id, second)...).Want(200)

	// A node that starts when a key is due publishes the next one, which signs a day later.
	keys := func(s *nodetest.Service) []any {
		return s.Anonymous().Call("GET", "/.well-known/jwks.json", nil).Want(200).Object()["keys"].([]any)
	}
	c.add(29 * 24 * time.Hour)
	there := s.SecondNode()
	nodetest.Same(t, "keys", len(keys(there)), 2)
	trade := func(s *nodetest.Service) (kid any) {
		t.Helper()
		on := *me
		on.Service = s
		token := accessToken(on.Trade(nodetest.Credentials(id, second)...))
		s.Eventually("the token works", func() bool { return on.WithToken(token).Call("GET", "/api/v1/flags", nil).Status == 200 })
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
	nodetest.Same(t, "who signs", trade(there), newest)
	on := *me
	on.Token = withTokenOf(me, there, id, second)
	on.Call("GET", "/api/v1/flags", nil).Want(200) // on the first node, which reads the keys again when it meets a new one
}

// withTokenOf is a token that a node issues.
func withTokenOf(c *nodetest.Client, s *nodetest.Service, id, secret string) string {
	c.Service.T.Helper()
	on := *c
	on.Service = s
	return accessToken(on.Trade(nodetest.Credentials(id, secret)...))
}
