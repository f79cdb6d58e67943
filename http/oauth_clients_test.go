package http_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
)

func TestOAuthClients(t *testing.T) {
	nodetest.Cases{
		"a client is created with a secret that is shown once": func(t *testing.T, me *nodetest.Client) {
			a := me.Call("POST", clients, map[string]any{"name": "Checkout backend", "scopes": []string{"projects:read", "flags:evaluate", "projects:read"}}).
				Want(201)
			body := a.Object()
			nodetest.Members(t, "the client", body, "clientId", "clientSecret", "name", "scopes", "createdAt")
			checkTimes(t, body)
			nodetest.Same(t, "name and scopes", []any{body["name"], body["scopes"]},
				[]any{"Checkout backend", []string{"projects:read", "flags:evaluate"}})
			nodetest.Same(t, "Location and Cache-Control", []string{a.Header.Get("Location"), a.Header.Get("Cache-Control")},
				[]string{clients + "/" + body["clientId"].(string), "no-store"})
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
			nodetest.Same(t, "names", nodetest.Column(me.Call("GET", clients, nil).Want(200).List(), "name"),
				[]string{"0", "1", "2"})
			page := me.Call("GET", clients+"?limit=1&offset=1", nil).Want(200)
			nodetest.Same(t, "a page", []any{nodetest.Column(page.List(), "name"), page.Header.Get("X-Total-Count")},
				[]any{[]string{"1"}, "3"})
		},
		"what is wrong with a client is named, all of it": func(_ *testing.T, me *nodetest.Client) {
			me.Call("POST", clients, `{}`).Refused(422, "name", "scopes")
			me.Call("POST", clients, map[string]any{"name": strings.Repeat("x", 201), "scopes": []string{}}).
				Refused(422, "name", "scopes")
			me.Call("POST", clients, map[string]any{"name": "x", "scopes": []string{"flags:read", "flags:delete", "admin"}}).
				Refused(422, "scopes[1]", "scopes[2]")
			me.Call("POST", clients, `{"name":"x","scopes":"flags:read"}`).Refused(422, "scopes")
			me.Call("POST", clients, `{"name":"x","scopes":["flags:read"],"clientId":"mine","tenantId":"t"}`).
				Refused(422, "clientId", "tenantId")
			me.Call("POST", clients, `{"name":"x","scopes":["flags:read"]}`, "X-Tenant-ID", "").Refused(400)
			if a := me.Call("POST", clients, map[string]any{"name": "x", "scopes": slices.Repeat([]string{"nothing"}, 50_000)}).
				Want(422); len(a.Body) > 10_000 {
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
			// Tokens contain the address of the service, which all nodes share.
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
			nodetest.Same(t, "the client", []any{body["clientId"], body["name"], body["scopes"], a.Header.Get("Cache-Control")},
				[]any{id, "x", []string{"projects:read"}, "no-store"})
			if body["clientSecret"] == old {
				t.Error("the secret is the old one")
			}
			for _, secret := range []string{old, body["clientSecret"].(string)} {
				me.WithToken(accessToken(me.Trade(nodetest.Credentials(id, secret)...))).
					Call("GET", "/api/v1/projects", nil).
					Want(200)
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
			form := url.Values{
				"grant_type":    {"client_credentials"},
				"client_id":     {id},
				"client_secret": {rotated.Object()["clientSecret"].(string)},
			}
			token := me.Service.Anonymous().
				Call("POST", "/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded").
				Want(200)
			checkLegacy(t, token)
			me.WithToken(accessToken(token)).Call("GET", "/api/v1/flags", nil).Want(200)
			checkLegacy(
				t,
				denied(
					me.Service.Anonymous().
						Call("POST", "/oauth/token", "grant_type=x", "Content-Type", "application/x-www-form-urlencoded"),
					400,
					"unsupported_grant_type",
				),
			)
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
