package main

import (
	"strings"
	"sync"
	"testing"

	"flagledger/commands"
	"flagledger/commands/identity/local"
	"flagledger/commands/keep/keys"
)

// account is what a legacy sign-up or sign-in gave.
type account struct {
	email                string
	token, refresh, user string
}

func (c *client) account() account {
	c.s.t.Helper()
	a := account{email: address()}
	body := c.s.anonymous().call("POST", "/auth/signup", map[string]string{"email": a.email, "password": password}).want(201).object()
	a.token, a.refresh, a.user = body["token"].(string), body["refreshToken"].(string), body["user"].(map[string]any)["id"].(string)
	return a
}

// with is a client with another token and no tenant.
func (c *client) with(token string) *client { return &client{s: c.s, token: token} }

// signIn is a further session of the account.
func (a account) signIn(c *client) account {
	body := c.s.anonymous().call("POST", "/auth/signin", map[string]string{"email": a.email, "password": password}).want(200).object()
	a.token, a.refresh = body["token"].(string), body["refreshToken"].(string)
	return a
}

// outside is an account that the identity provider knows and the service has never seen.
func (c *client) outside() commands.Session {
	c.s.t.Helper()
	pool, err := openPool(c.s.t.Context(), c.s.databaseURL)
	if err != nil {
		c.s.t.Fatal(err)
	}
	defer pool.Close()
	signing, err := keys.Open(c.s.t.Context(), pool, c.s.config.now, testLog(c.s.t))
	if err != nil {
		c.s.t.Fatal(err)
	}
	provider := local.New(pool, local.Options{Keys: signing, Issuer: c.s.url, Audience: audience, VerifiedEmails: true, Now: c.s.config.now})
	session, err := provider.SignUp(c.s.t.Context(), address(), password, "From Outside")
	if err != nil {
		c.s.t.Fatal(err)
	}
	return session
}

func checkBootstrap(t *testing.T, a *answer, email string) map[string]any {
	t.Helper()
	body := a.object()
	members(t, "the bootstrap answer", body, "success", "message", "data")
	if message, ok := body["message"].(string); body["success"] != true || !ok || message == "" {
		t.Errorf("success or message is wrong: %s", a.body)
	}
	data, _ := body["data"].(map[string]any)
	members(t, "data", data, "user", "subscription", "tenants", "active_tenant_id", "active_tenant_role", "canonical_tenant_id", "canonical_role")
	user := data["user"].(map[string]any)
	members(t, "user", user, "uid", "email", "tenant_id", "role")
	members(t, "subscription", data["subscription"], "plan", "status", "billingCycle")
	for _, tenant := range data["tenants"].([]any) {
		members(t, "a tenant", tenant, "tenant_id", "tenant_name", "role")
	}
	same(t, "email", user["email"], email)
	same(t, "the user's tenant is the active one", user["tenant_id"], data["active_tenant_id"])
	same(t, "the user's role is the active one", user["role"], data["active_tenant_role"])
	return data
}

func TestAuthentication(t *testing.T) {
	cases{
		"legacy sign-up answers 201 with tokens": func(t *testing.T, me *client) {
			email := address()
			a := me.s.anonymous().call("POST", "/auth/signup", map[string]string{"email": email, "password": password, "displayName": "Ada Lovelace"}).want(201)
			checkLegacy(t, a)
			body := a.object()
			members(t, "the answer", body, "token", "refreshToken", "expiresIn", "user")
			members(t, "user", body["user"], "id", "email", "displayName", "role")
			a.shows(map[string]any{"expiresIn": 3600})
			user := body["user"].(map[string]any)
			same(t, "user", []any{user["email"], user["displayName"], user["role"]}, []string{email, "Ada Lovelace", "admin"})
			me.with(body["token"].(string)).call("GET", "/api/v1/tenants", nil).want(200)
		},
		"legacy sign-in answers as legacy sign-up does": func(t *testing.T, me *client) {
			account := me.account()
			a := me.s.anonymous().call("POST", "/auth/signin", map[string]string{"email": strings.ToUpper(account.email), "password": password}).want(200)
			checkLegacy(t, a)
			members(t, "the answer", a.object(), "token", "refreshToken", "expiresIn", "user")
			user := a.object()["user"].(map[string]any)
			same(t, "user", []any{user["id"], user["email"], user["role"]}, []string{account.user, account.email, "admin"})
		},
		"a wrong password and an unknown address are told alike": func(t *testing.T, me *client) {
			account := me.account()
			wrong := me.s.anonymous().call("POST", "/auth/signin", map[string]string{"email": account.email, "password": "wrong password"}).refused(401)
			unknown := me.s.anonymous().call("POST", "/auth/signin", map[string]string{"email": address(), "password": password}).refused(401)
			sameProblem(t, wrong, unknown)
		},
		"legacy sign-in names what is missing": func(_ *testing.T, me *client) {
			me.s.anonymous().call("POST", "/auth/signin", `{}`).refused(422, "email", "password")
			me.s.anonymous().call("POST", "/auth/signin", `{"email":"a@example.com"}`).refused(422, "password")
		},
		"sign-up answers 201 with the bootstrap": func(t *testing.T, me *client) {
			email := address()
			a := me.s.anonymous().call("POST", "/api/v1/auth/signup", map[string]string{"email": email, "password": password}).want(201)
			data := checkBootstrap(t, a, email)
			same(t, "canonical role", data["canonical_role"], "admin")
			same(t, "canonical tenant", data["canonical_tenant_id"], data["active_tenant_id"])
			same(t, "subscription", data["subscription"], map[string]string{"plan": "free", "status": "active", "billingCycle": "none"})
			if len(data["tenants"].([]any)) != 1 {
				t.Errorf("a new person has the tenants %v", data["tenants"])
			}
			if a.header.Get("Deprecation") != "" {
				t.Error("the versioned sign-up calls itself deprecated")
			}
		},
		"sign-up takes the token of somebody whom the identity provider knows": func(t *testing.T, me *client) {
			session := me.outside()
			body := map[string]string{"idToken": session.IDToken}
			checkBootstrap(t, me.s.anonymous().call("POST", "/api/v1/auth/signup", body).want(201), session.Email)
			me.s.anonymous().call("POST", "/api/v1/auth/signup", body).refused(409)
			checkBootstrap(t, me.s.anonymous().call("POST", "/api/v1/auth/login", body).want(200), session.Email)
		},
		"first sign-ins at once make one tenant": func(t *testing.T, me *client) {
			session := me.outside()
			var all sync.WaitGroup
			answers := make([]*answer, 8)
			for i := range answers {
				all.Go(func() {
					answers[i] = me.s.anonymous().call("POST", "/api/v1/auth/login", map[string]string{"idToken": session.IDToken})
				})
			}
			all.Wait()
			for _, a := range answers {
				data := checkBootstrap(t, a.want(200), session.Email)
				same(t, "tenants", len(data["tenants"].([]any)), 1)
			}
		},
		"whoever has not begun to use the service can do nothing else": func(_ *testing.T, me *client) {
			session := me.outside()
			stranger := me.with(session.IDToken)
			for _, call := range [][3]string{
				{"POST", "/api/v1/tenants", `{"name":"mine"}`}, {"GET", "/api/v1/tenants", ""}, {"POST", "/api/v1/auth/logout", ""}, {"GET", "/api/v1/flags", ""},
				{"POST", "/api/v1/admin/invitations/accept", ""}, {"POST", "/ofrep/v1/evaluate/flags", `{}`}, {"POST", flagPath("any", "/evaluate"), `{}`},
			} {
				a := stranger.call(call[0], call[1], call[2], "X-Tenant-ID", me.tenant).refused(403)
				if !strings.Contains(string(a.body), "POST /api/v1/auth/login") {
					me.s.t.Errorf("%s does not say what to do: %s", a.call, a.body)
				}
			}
			me.s.anonymous().call("POST", "/api/v1/auth/login", map[string]string{"idToken": session.IDToken}).want(200)
			stranger.call("POST", "/api/v1/tenants", `{"name":"mine"}`).want(201)
		},
		"another node knows at once who has begun to use the service": func(_ *testing.T, me *client) {
			second := me.s.secondNode()
			for range 20 {
				there := &client{s: second, token: me.account().token}
				there.call("GET", "/api/v1/tenants", nil).want(200)
			}
		},
		"a known address is 409 in any case": func(_ *testing.T, me *client) {
			account := me.account()
			for _, path := range []string{"/auth/signup", "/api/v1/auth/signup"} {
				for _, email := range []string{account.email, strings.ToUpper(account.email)} {
					me.s.anonymous().call("POST", path, map[string]string{"email": email, "password": password}).refused(409)
				}
			}
		},
		"sign-ups at once with one address make one account": func(t *testing.T, me *client) {
			body := map[string]string{"email": address(), "password": password}
			same(t, "statuses", statuses(4, func(int) *answer { return me.s.anonymous().call("POST", "/auth/signup", body) }), map[int]int{201: 1, 409: 3})
		},
		"a bad address and a short password are both named": func(_ *testing.T, me *client) {
			for _, path := range []string{"/auth/signup", "/api/v1/auth/signup"} {
				me.s.anonymous().call("POST", path, `{"email":"nobody","password":"1234567"}`).refused(422, "email", "password")
				me.s.anonymous().call("POST", path, `{}`).refused(422, "email", "password")
				me.s.anonymous().call("POST", path, map[string]string{"email": address(), "password": "short"}).refused(422, "password")
				me.s.anonymous().call("POST", path, map[string]string{"email": address(), "password": "ééééééé"}).refused(422, "password")
				me.s.anonymous().call("POST", path, map[string]string{"email": "Ada <ada@example.com>", "password": password}).refused(422, "email")
				me.s.anonymous().call("POST", path, map[string]string{"email": address(), "password": password, "displayName": strings.Repeat("x", 201)}).refused(422, "displayName")
			}
		},
		"login refuses tokens that do not verify": func(t *testing.T, me *client) {
			for what, token := range badTokens(me.token) {
				a := me.s.anonymous().call("POST", "/api/v1/auth/login", map[string]string{"idToken": token}).refused(401)
				if a.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s: no WWW-Authenticate", what)
				}
			}
			me.s.anonymous().call("POST", "/api/v1/auth/login", `{}`).refused(422, "idToken")
			me.s.anonymous().call("POST", "/api/v1/auth/login", `{"idToken":""}`).refused(422, "idToken")
			me.s.anonymous().call("POST", "/api/v1/auth/signup", `{"idToken":"nonsense"}`).refused(401)
		},
		"a sign-in with a provider is refused to who signed in with another": func(t *testing.T, me *client) {
			account := me.account()
			for name, alias := range map[string]string{"google": "/auth/google", "github": "", "microsoft": "/auth/microsoft"} {
				path := "/api/v1/auth/signin/" + name
				signIn := func(idToken, providerName string) *answer {
					return me.s.anonymous().call("POST", path, map[string]string{"idToken": idToken, "providerName": providerName})
				}
				signIn(account.token, name).refused(422, "idToken")
				signIn(account.token, strings.ToUpper(name)+".com").refused(422, "idToken")
				signIn(account.token, "facebook").refused(422, "providerName")
				signIn("", "password").refused(422, "idToken", "providerName")
				signIn(account.token+"x", name).refused(401)
				me.s.anonymous().call("POST", path, `{}`).refused(422, "idToken", "providerName")
				if alias != "" {
					checkLegacy(t, me.s.anonymous().call("POST", alias, map[string]string{"idToken": account.token}).refused(422, "idToken"))
					me.s.anonymous().call("POST", alias, `{}`).refused(422, "idToken")
					me.s.anonymous().call("POST", alias, `{"idToken":"nonsense"}`).refused(401)
				}
			}
		},
		"a call without a good token is 401 and says how to do better": func(t *testing.T, me *client) {
			headers := map[string]string{"none": "", "another scheme": "Basic bWU6cHc=", "no token": "Bearer", "an empty token": "Bearer ", "the token alone": me.token}
			for what, token := range badTokens(me.token) {
				headers[what] = "Bearer " + token
			}
			for what, header := range headers {
				for _, call := range [][2]string{{"GET", "/api/v1/tenants"}, {"GET", "/api/v1/flags"}, {"POST", "/api/v1/auth/logout"}, {"POST", flagPath("any", "/evaluate")}} {
					a := me.call(call[0], call[1], nil, "Authorization", header).refused(401)
					if got := a.header.Get("WWW-Authenticate"); got != "Bearer" {
						t.Errorf("%s, %s: WWW-Authenticate is %q", what, a.call, got)
					}
				}
			}
			me.call("GET", "/api/v1/tenants", nil, "Authorization", "bearer "+me.token).want(200)
		},
		"logout ends the token and the refresh token of this session alone": func(_ *testing.T, me *client) {
			account := me.account()
			other := account.signIn(me)
			gone := me.with(account.token)
			gone.call("POST", "/api/v1/auth/logout", nil).want(200).shows(map[string]any{"success": true})
			gone.call("GET", "/api/v1/tenants", nil).refused(401)
			gone.call("POST", flagPath("any", "/evaluate"), `{}`).refused(401)
			gone.call("POST", "/api/v1/auth/logout", nil).refused(401)
			gone.call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).refused(401)
			gone.call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).refused(401)
			me.with(other.token).call("GET", "/api/v1/tenants", nil).want(200)
			me.with("").call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": other.refresh}).want(200)
			me.with(account.signIn(me).token).call("GET", "/api/v1/tenants", nil).want(200)
		},
		"logout ends tokens that the session was refreshed to": func(_ *testing.T, me *client) {
			account := me.account()
			body := me.with("").call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).want(200).object()
			newer := me.with(body["token"].(string))
			newer.call("POST", "/api/v1/auth/logout", nil).want(200)
			newer.call("GET", "/api/v1/tenants", nil).refused(401)
			me.with(account.token).call("GET", "/api/v1/tenants", nil).refused(401)
			newer.call("POST", "/api/v1/auth/refresh", map[string]any{"refreshToken": body["refreshToken"]}).refused(401)
		},
		"logout ends the session on every node": func(_ *testing.T, me *client) {
			account := me.account()
			second := me.s.secondNode()
			there := &client{s: second, token: account.token}
			there.call("GET", "/api/v1/tenants", nil).want(200)
			me.with(account.token).call("POST", "/api/v1/auth/logout", nil).want(200)
			second.eventually("the other node refuses the token", func() bool { return there.call("GET", "/api/v1/tenants", nil).status == 401 })
			there.call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).refused(401)
		},
		"refresh rotates the refresh token, and its second use ends the family": func(t *testing.T, me *client) {
			account := me.account()
			refresh := func(token any) *answer {
				return me.with("").call("POST", "/api/v1/auth/refresh", map[string]any{"refreshToken": token})
			}
			first := refresh(account.refresh).want(200)
			body := first.object()
			members(t, "the answer", body, "token", "refreshToken", "expiresIn", "user")
			if body["refreshToken"] == account.refresh {
				t.Error("the refresh token is not rotated")
			}
			me.with(body["token"].(string)).call("GET", "/api/v1/tenants", nil).want(200)
			second := refresh(body["refreshToken"]).want(200).object()
			other, node := account.signIn(me), me.s.secondNode()
			refresh(account.refresh).refused(401)
			refresh(second["refreshToken"]).refused(401)
			for _, token := range []string{account.token, body["token"].(string), second["token"].(string)} {
				me.with(token).call("GET", "/api/v1/tenants", nil).refused(401)
				there := &client{s: node, token: token}
				node.eventually("the other node refuses the token", func() bool { return there.call("GET", "/api/v1/tenants", nil).status == 401 })
			}
			me.with(other.token).call("GET", "/api/v1/tenants", nil).want(200)
			refresh(other.refresh).want(200)
			refresh("nonsense").refused(401)
			refresh("").refused(422, "refreshToken")
		},
		"the active tenant is the one last used, the canonical one the first": func(t *testing.T, me *client) {
			account := me.account()
			me = me.with(account.token)
			first := checkBootstrap(t, me.call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).want(200), account.email)["canonical_tenant_id"].(string)
			second := me.newTenant("second").tenant
			for _, used := range []string{second, first, second} {
				me.call("GET", "/api/v1/flags", nil, "X-Tenant-ID", used).want(200)
				data := checkBootstrap(t, me.call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).want(200), account.email)
				same(t, "active and canonical tenant", []any{data["active_tenant_id"], data["canonical_tenant_id"]}, []string{used, first})
				same(t, "tenants", []any{data["tenants"].([]any)[0].(map[string]any)["tenant_id"], data["tenants"].([]any)[1].(map[string]any)["tenant_name"]}, []string{first, "second"})
			}
		},
		"a tenant that one may not enter does not become the active one": func(t *testing.T, me *client) {
			account := me.account()
			mine := me.with(account.token)
			mine.call("GET", "/api/v1/flags", nil, "X-Tenant-ID", me.tenant).refused(403)
			data := checkBootstrap(t, mine.call("POST", "/api/v1/auth/login", map[string]string{"idToken": account.token}).want(200), account.email)
			same(t, "active tenant", data["active_tenant_id"], data["canonical_tenant_id"])
		},
		"without X-Tenant-ID a call is about the first tenant": func(t *testing.T, me *client) {
			account := me.account()
			mine := me.with(account.token)
			second := mine.newTenant("second")
			mine.call("POST", "/api/v1/projects", `{"name":"by default"}`).want(201)
			second.call("POST", "/api/v1/projects", `{"name":"in the second"}`).want(201)
			first := mine.call("GET", "/api/v1/tenants", nil).want(200).list()[0]["id"].(string)
			got := mine.call("GET", "/api/v1/projects", nil, "X-Tenant-ID", first).want(200).list()
			same(t, "projects", column(got, "name"), []string{"by default"})
		},
	}.run(t)
}

func checkLegacy(t *testing.T, a *answer) {
	t.Helper()
	if a.header.Get("Deprecation") == "" || !strings.Contains(a.header.Get("Link"), `rel="successor-version"`) {
		t.Errorf("%s does not say that it is deprecated: %v", a.call, a.header)
	}
}

// badTokens are tokens that do not hold, by what is wrong with them.
func badTokens(good string) map[string]string {
	part := strings.Split(good, ".")
	return map[string]string{
		"nonsense":        "nonsense",
		"another payload": part[0] + "." + part[1][:len(part[1])-2] + "QQ." + part[2],
		"no signature":    part[0] + "." + part[1] + ".",
		"unsigned":        "eyJhbGciOiJub25lIn0." + part[1] + ".",
		"trailing text":   good + "x",
		"huge":            good + strings.Repeat("x", 20_000),
	}
}

// statuses makes n calls at once and counts their statuses.
func statuses(n int, call func(i int) *answer) map[int]int {
	answers := make([]*answer, n)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = call(i) })
	}
	all.Wait()
	count := map[int]int{}
	for _, a := range answers {
		count[a.status]++
	}
	return count
}

// sameProblem checks that two problems differ in nothing but the request's id.
func sameProblem(t *testing.T, a, b *answer) {
	t.Helper()
	x, y := a.object(), b.object()
	delete(x, "instance")
	delete(y, "instance")
	same(t, a.call+" and "+b.call+" are refused alike", x, y)
}
