package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

func TestSessions(t *testing.T) {
	nodetest.Cases{
		"a call without a good token is 401 and says how to do better": func(t *testing.T, me *nodetest.Client) {
			headers := map[string]string{
				"none":            "",
				"another scheme":  "Basic bWU6cHc=",
				"no token":        "Bearer",
				"an empty token":  "Bearer ",
				"the token alone": me.Token,
			}
			for what, token := range badTokens(me.Token) {
				headers[what] = "Bearer " + token
			}
			for what, header := range headers {
				for _, call := range [][2]string{{"GET", "/api/v1/tenants"}, {"GET", "/api/v1/flags"}, {"POST", "/api/v1/auth/logout"}, {"POST", nodetest.FlagPath("any", "/evaluate")}} {
					a := me.Call(call[0], call[1], nil, "Authorization", header).Refused(401)
					if got := a.Header.Get("WWW-Authenticate"); got != "Bearer" {
						t.Errorf("%s, %s: WWW-Authenticate is %q", what, a.Call, got)
					}
				}
			}
			me.Call("GET", "/api/v1/tenants", nil, "Authorization", "bearer "+me.Token).Want(200)
		},
		"logout ends the token and the refresh token of this session alone": func(_ *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			other := account.signIn(me)
			gone := withToken(me, account.token)
			gone.Call("POST", "/api/v1/auth/logout", nil).Want(200).Shows(map[string]any{"success": true})
			gone.Call("GET", "/api/v1/tenants", nil).Refused(401)
			gone.Call("POST", nodetest.FlagPath("any", "/evaluate"), `{}`).Refused(401)
			gone.Call("POST", "/api/v1/auth/logout", nil).Refused(401)
			gone.Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).Refused(401)
			gone.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).Refused(401)
			withToken(me, other.token).Call("GET", "/api/v1/tenants", nil).Want(200)
			withToken(me, "").Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": other.refresh}).Want(200)
			withToken(me, account.signIn(me).token).Call("GET", "/api/v1/tenants", nil).Want(200)
		},
		"logout ends tokens that the session was refreshed to": func(_ *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			body := withToken(me, "").Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).
				Want(200).
				Object()
			newer := withToken(me, body["token"].(string))
			newer.Call("POST", "/api/v1/auth/logout", nil).Want(200)
			newer.Call("GET", "/api/v1/tenants", nil).Refused(401)
			withToken(me, account.token).Call("GET", "/api/v1/tenants", nil).Refused(401)
			newer.Call("POST", "/api/v1/auth/refresh", map[string]any{"refreshToken": body["refreshToken"]}).Refused(401)
		},
		"logout ends the session on every node": func(_ *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			second := me.Service.SecondNode()
			there := &nodetest.Client{Service: second, Token: account.token}
			there.Call("GET", "/api/v1/tenants", nil).Want(200)
			withToken(me, account.token).Call("POST", "/api/v1/auth/logout", nil).Want(200)
			second.Eventually("the other node refuses the token",
				func() bool { return there.Call("GET", "/api/v1/tenants", nil).Status == 401 })
			there.Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).Refused(401)
		},
		"refresh rotates the refresh token, and its second use ends the family": func(t *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			refresh := func(token any) *nodetest.Answer {
				return withToken(me, "").Call("POST", "/api/v1/auth/refresh", map[string]any{"refreshToken": token})
			}
			first := refresh(account.refresh).Want(200)
			body := first.Object()
			nodetest.Members(t, "the answer", body, "token", "refreshToken", "expiresIn", "user")
			if body["refreshToken"] == account.refresh {
				t.Error("the refresh token is not rotated")
			}
			withToken(me, body["token"].(string)).Call("GET", "/api/v1/tenants", nil).Want(200)
			second := refresh(body["refreshToken"]).Want(200).Object()
			other, node := account.signIn(me), me.Service.SecondNode()
			refresh(account.refresh).Refused(401)
			refresh(second["refreshToken"]).Refused(401)
			for _, token := range []string{account.token, body["token"].(string), second["token"].(string)} {
				withToken(me, token).Call("GET", "/api/v1/tenants", nil).Refused(401)
				there := &nodetest.Client{Service: node, Token: token}
				node.Eventually("the other node refuses the token",
					func() bool { return there.Call("GET", "/api/v1/tenants", nil).Status == 401 })
			}
			withToken(me, other.token).Call("GET", "/api/v1/tenants", nil).Want(200)
			refresh(other.refresh).Want(200)
			refresh("nonsense").Refused(401)
			refresh("").Refused(422, "refreshToken")
		},
	}.Run(t)
}

func TestTheTenantOfASession(t *testing.T) {
	nodetest.Cases{
		"the active tenant is the last visited one, the canonical one the first": func(t *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			me = withToken(me, account.token)
			first := checkBootstrap(t, me.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).Want(200), account.email)["canonical_tenant_id"].(string)
			second := me.NewTenant("second").Tenant
			for _, used := range []string{second, first, second} {
				me.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", used).Want(200)
				data := checkBootstrap(t,
					me.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).Want(200), account.email)
				nodetest.Same(t, "active and canonical tenant", []any{data["active_tenant_id"], data["canonical_tenant_id"]},
					[]string{used, first})
				nodetest.Same(
					t,
					"tenants",
					[]any{
						data["tenants"].([]any)[0].(map[string]any)["tenant_id"],
						data["tenants"].([]any)[1].(map[string]any)["tenant_name"],
					},
					[]string{first, "second"},
				)
			}
		},
		"a tenant that one may not enter does not become the active one": func(t *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			mine := withToken(me, account.token)
			mine.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", me.Tenant).Refused(403)
			data := checkBootstrap(t,
				mine.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).Want(200), account.email)
			nodetest.Same(t, "active tenant", data["active_tenant_id"], data["canonical_tenant_id"])
		},
		"without X-Tenant-ID a call is about the first tenant": func(t *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			mine := withToken(me, account.token)
			second := mine.NewTenant("second")
			mine.Call("POST", "/api/v1/projects", `{"name":"by default"}`).Want(201)
			second.Call("POST", "/api/v1/projects", `{"name":"in the second"}`).Want(201)
			first := mine.Call("GET", "/api/v1/tenants", nil).Want(200).List()[0]["id"].(string)
			got := mine.Call("GET", "/api/v1/projects", nil, "X-Tenant-ID", first).Want(200).List()
			nodetest.Same(t, "projects", nodetest.Column(got, "name"), []string{"by default"})
		},
	}.Run(t)
}
