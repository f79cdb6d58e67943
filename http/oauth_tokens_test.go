package http_test

import (
	"maps"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"

	"flagledger/cmd/flagledger/nodetest"
)

func TestMachineAccess(t *testing.T) {
	nodetest.Cases{
		"a token is good for the scopes that it was asked for, of those that the client has": func(t *testing.T, me *nodetest.Client) {
			id, secret := me.OAuthClient("x", scopes...)
			reader := me.WithToken(
				accessToken(me.Trade(nodetest.Credentials(id, secret, "scope", "flags:read projects:read")...)),
			)
			reader.Call("GET", "/api/v1/flags", nil).Want(200)
			reader.Call("GET", "/api/v1/projects", nil).Want(200)
			a := reader.Call("POST", "/api/v1/projects", `{"name":"x"}`).Refused(403)
			nodetest.Same(t, "WWW-Authenticate", a.Header.Get("WWW-Authenticate"),
				`Bearer error="insufficient_scope", scope="projects:write"`)
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
			nodetest.Same(t, "projects",
				nodetest.Column(machine.Call("GET", "/api/v1/projects", nil, "X-Tenant-ID", me.Tenant).Want(200).List(), "name"),
				[]string{"mine"})
			machine.Call("POST", "/api/v1/projects", `{"name":"by default"}`).Want(201)
			nodetest.Same(t, "projects", nodetest.Column(me.Call("GET", "/api/v1/projects", nil).Want(200).List(), "name"),
				[]string{"mine", "by default"})
			machine.Call("GET", "/api/v1/projects", nil).Refused(400) // required here
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
			me.Service.Anonymous().
				Call("GET", "/api/v1/flags", nil, "Authorization", "Basic "+machine.Token, "X-Tenant-ID", me.Tenant).
				Refused(401)
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

// forgedTokens returns variants of a machine's token by their fault.
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
