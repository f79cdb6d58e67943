package http_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/identity/local"
	"flagledger/commands/keep/keys"
	"flagledger/commands/people"
)

// account is the response to a legacy sign-up or sign-in.
type account struct {
	email                string
	token, refresh, user string
}

func newAccount(c *nodetest.Client) account {
	c.Service.T.Helper()
	return signUpAs(c.Service, nodetest.Address())
}

func signUpAs(s *nodetest.Service, email string) account {
	s.T.Helper()
	a := account{email: email}
	body := s.Anonymous().
		Call("POST", "/auth/signup", map[string]string{"email": a.email, "password": nodetest.Password}).
		Want(201).
		Object()
	a.token, a.refresh, a.user = body["token"].(string), body["refreshToken"].(string), body["user"].(map[string]any)["id"].(string)
	return a
}

// withToken returns a client with another token and no tenant.
func withToken(c *nodetest.Client, token string) *nodetest.Client {
	return &nodetest.Client{Service: c.Service, Token: token}
}

// signIn starts a further session of the account.
func (a account) signIn(c *nodetest.Client) account {
	body := c.Service.Anonymous().
		Call("POST", "/auth/signin", map[string]string{"email": a.email, "password": nodetest.Password}).
		Want(200).
		Object()
	a.token, a.refresh = body["token"].(string), body["refreshToken"].(string)
	return a
}

// outside creates an account that the identity provider knows and the service has never seen.
func outside(c *nodetest.Client) people.Session {
	c.Service.T.Helper()
	pool, err := node.OpenPool(c.Service.T.Context(), c.Service.DatabaseURL)
	if err != nil {
		c.Service.T.Fatal(err)
	}
	defer pool.Close()
	secret, err := keys.ParseSecret(nodetest.Secret)
	if err != nil {
		c.Service.T.Fatal(err)
	}
	signing, err := keys.Open(c.Service.T.Context(), pool, secret, "", time.Now, nodetest.Log(c.Service.T))
	if err != nil {
		c.Service.T.Fatal(err)
	}
	provider := local.New(
		pool,
		local.Options{
			Keys:                 signing,
			Issuer:               c.Service.URL,
			Audience:             node.Audience,
			AssumeEmailsVerified: true,
			Now:                  time.Now,
			HashMemory:           8,
		},
	)
	session, err := provider.SignUp(c.Service.T.Context(), nodetest.Address(), nodetest.Password, "From Outside")
	if err != nil {
		c.Service.T.Fatal(err)
	}
	return session
}

func checkBootstrap(t *testing.T, a *nodetest.Answer, email string) map[string]any {
	t.Helper()
	body := a.Object()
	nodetest.Members(t, "the bootstrap answer", body, "success", "message", "data")
	if message, ok := body["message"].(string); body["success"] != true || !ok || message == "" {
		t.Errorf("success or message is wrong: %s", a.Body)
	}
	data, _ := body["data"].(map[string]any)
	nodetest.Members(t, "data", data, "user", "subscription", "tenants", "invitations", "active_tenant_id",
		"active_tenant_role", "canonical_tenant_id", "canonical_role")
	user := data["user"].(map[string]any)
	nodetest.Members(t, "user", user, "uid", "email", "tenant_id", "role")
	nodetest.Members(t, "subscription", data["subscription"], "plan", "status", "billingCycle")
	for _, tenant := range data["tenants"].([]any) {
		nodetest.Members(t, "a tenant", tenant, "tenant_id", "tenant_name", "role", "added_by")
	}
	nodetest.Same(t, "email", user["email"], email)
	nodetest.Same(t, "the user's tenant is the active one", user["tenant_id"], data["active_tenant_id"])
	nodetest.Same(t, "the user's role is the active one", user["role"], data["active_tenant_role"])
	return data
}

func checkLegacy(t *testing.T, a *nodetest.Answer) {
	t.Helper()
	if a.Header.Get("Deprecation") == "" || !strings.Contains(a.Header.Get("Link"), `rel="successor-version"`) {
		t.Errorf("%s does not say that it is deprecated: %v", a.Call, a.Header)
	}
}

// badTokens are invalid tokens by their fault.
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

// statuses makes n concurrent calls and counts their statuses.
func statuses(n int, call func(i int) *nodetest.Answer) map[int]int {
	answers := make([]*nodetest.Answer, n)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = call(i) })
	}
	all.Wait()
	count := map[int]int{}
	for _, a := range answers {
		count[a.Status]++
	}
	return count
}

// sameProblem checks that two problems differ only in the request's id.
func sameProblem(t *testing.T, a, b *nodetest.Answer) {
	t.Helper()
	x, y := a.Object(), b.Object()
	delete(x, "instance")
	delete(y, "instance")
	nodetest.Same(t, a.Call+" and "+b.Call+" are refused alike", x, y)
}

func TestSigningUpAndIn(t *testing.T) {
	nodetest.Cases{
		"legacy sign-up answers 201 with tokens": func(t *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			a := me.Service.Anonymous().
				Call("POST", "/auth/signup", map[string]string{"email": email, "password": nodetest.Password, "displayName": "Ada Lovelace"}).
				Want(201)
			checkLegacy(t, a)
			body := a.Object()
			nodetest.Members(t, "the answer", body, "token", "refreshToken", "expiresIn", "user")
			nodetest.Members(t, "user", body["user"], "id", "email", "displayName", "role")
			a.Shows(map[string]any{"expiresIn": 3600})
			user := body["user"].(map[string]any)
			nodetest.Same(t, "user", []any{user["email"], user["displayName"], user["role"]},
				[]string{email, "Ada Lovelace", "admin"})
			withToken(me, body["token"].(string)).Call("GET", "/api/v1/tenants", nil).Want(200)
		},
		"legacy sign-in answers as legacy sign-up does": func(t *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			a := me.Service.Anonymous().
				Call("POST", "/auth/signin", map[string]string{"email": strings.ToUpper(account.email), "password": nodetest.Password}).
				Want(200)
			checkLegacy(t, a)
			nodetest.Members(t, "the answer", a.Object(), "token", "refreshToken", "expiresIn", "user")
			user := a.Object()["user"].(map[string]any)
			nodetest.Same(t, "user", []any{user["id"], user["email"], user["role"]},
				[]string{account.user, account.email, "admin"})
		},
		"a wrong password and an unknown address are told alike": func(t *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			wrong := me.Service.Anonymous().
				Call("POST", "/auth/signin", map[string]string{"email": account.email, "password": "wrong password"}).
				Refused(401)
			unknown := me.Service.Anonymous().
				Call("POST", "/auth/signin", map[string]string{"email": nodetest.Address(), "password": nodetest.Password}).
				Refused(401)
			sameProblem(t, wrong, unknown)
		},
		"legacy sign-in names what is missing": func(_ *testing.T, me *nodetest.Client) {
			me.Service.Anonymous().Call("POST", "/auth/signin", `{}`).Refused(422, "email", "password")
			me.Service.Anonymous().Call("POST", "/auth/signin", `{"email":"a@example.com"}`).Refused(422, "password")
		},
		"sign-up answers 201 with the bootstrap": func(t *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			a := me.Service.Anonymous().
				Call("POST", "/api/v1/auth/signup", map[string]string{"email": email, "password": nodetest.Password}).
				Want(201)
			data := checkBootstrap(t, a, email)
			nodetest.Same(t, "canonical role", data["canonical_role"], "admin")
			nodetest.Same(t, "canonical tenant", data["canonical_tenant_id"], data["active_tenant_id"])
			nodetest.Same(t, "subscription", data["subscription"],
				map[string]any{"plan": "free", "status": "active", "billingCycle": nil})
			if len(data["tenants"].([]any)) != 1 {
				t.Errorf("a new person has the tenants %v", data["tenants"])
			}
			if a.Header.Get("Deprecation") != "" {
				t.Error("the versioned sign-up calls itself deprecated")
			}
		},
		"sign-up takes the token of somebody whom the identity provider knows": func(t *testing.T, me *nodetest.Client) {
			session := outside(me)
			body := map[string]string{"idToken": session.IDToken}
			checkBootstrap(t, me.Service.Anonymous().Call("POST", "/api/v1/auth/signup", body).Want(201), session.Email)
			me.Service.Anonymous().Call("POST", "/api/v1/auth/signup", body).Refused(409)
			checkBootstrap(t, me.Service.Anonymous().Call("POST", "/api/v1/auth/login", body).Want(200), session.Email)
		},
		"first sign-ins at once make one tenant": func(t *testing.T, me *nodetest.Client) {
			session := outside(me)
			var all sync.WaitGroup
			answers := make([]*nodetest.Answer, 8)
			for i := range answers {
				all.Go(func() {
					answers[i] = me.Service.Anonymous().
						Call("POST", "/api/v1/auth/login", map[string]string{"idToken": session.IDToken})
				})
			}
			all.Wait()
			for _, a := range answers {
				data := checkBootstrap(t, a.Want(200), session.Email)
				nodetest.Same(t, "tenants", len(data["tenants"].([]any)), 1)
			}
		},
		"whoever has not begun to use the service can do nothing else": func(_ *testing.T, me *nodetest.Client) {
			session := outside(me)
			stranger := withToken(me, session.IDToken)
			for _, call := range [][3]string{
				{"POST", "/api/v1/tenants", `{"name":"mine"}`}, {"GET", "/api/v1/tenants", ""}, {"POST", "/api/v1/auth/logout", ""}, {"GET", "/api/v1/flags", ""},
				{"POST", "/api/v1/admin/invitations/accept", ""}, {"POST", "/ofrep/v1/evaluate/flags", `{}`}, {"POST", nodetest.FlagPath("any", "/evaluate"), `{}`},
			} {
				a := stranger.Call(call[0], call[1], call[2], "X-Tenant-ID", me.Tenant).Refused(403)
				if !strings.Contains(string(a.Body), "POST /api/v1/auth/login") {
					me.Service.T.Errorf("%s does not say what to do: %s", a.Call, a.Body)
				}
			}
			me.Service.Anonymous().Call("POST", "/api/v1/auth/login", map[string]string{"idToken": session.IDToken}).Want(200)
			stranger.Call("POST", "/api/v1/tenants", `{"name":"mine"}`).Want(201)
		},
		"another node knows at once who has begun to use the service": func(_ *testing.T, me *nodetest.Client) {
			second := me.Service.SecondNode()
			for range 20 {
				there := &nodetest.Client{Service: second, Token: newAccount(me).token}
				there.Call("GET", "/api/v1/tenants", nil).Want(200)
			}
		},
		"a known address is 409 in any case": func(_ *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			for _, path := range []string{"/auth/signup", "/api/v1/auth/signup"} {
				for _, email := range []string{account.email, strings.ToUpper(account.email)} {
					me.Service.Anonymous().
						Call("POST", path, map[string]string{"email": email, "password": nodetest.Password}).
						Refused(409)
				}
			}
		},
		"sign-ups at once with one address make one account": func(t *testing.T, me *nodetest.Client) {
			email := nodetest.Address()
			answers := make([]*nodetest.Answer, 4)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() {
					body := map[string]string{"email": email, "password": nodetest.Password + string("ab"[i%2])}
					answers[i] = me.Service.Anonymous().Call("POST", "/auth/signup", body)
				})
			}
			all.Wait()
			users := map[any]bool{}
			for i, a := range answers {
				if a.Status != 409 { // callers with the same password may be let in too, until the first one is
					users[a.Want(201).Object()["user"].(map[string]any)["id"]] = true
					nodetest.Same(t, "the other password", answers[1-i%2].Status, 409)
				}
			}
			nodetest.Same(t, "accounts", len(users), 1)
		},
		"whose sign-up failed once the account was there signs up with its password": func(_ *testing.T, me *nodetest.Client) {
			for _, path := range []string{"/auth/signup", "/api/v1/auth/signup"} {
				session := outside(me)
				body := map[string]string{"email": session.Email, "password": "another horse"}
				me.Service.Anonymous().Call("POST", path, body).Refused(409)
				body["password"] = nodetest.Password
				me.Service.Anonymous().Call("POST", path, body).Want(201)
				me.Service.Anonymous().Call("POST", path, body).Refused(409)
			}
		},
		"a bad address and a short password are both named": func(_ *testing.T, me *nodetest.Client) {
			for _, path := range []string{"/auth/signup", "/api/v1/auth/signup"} {
				me.Service.Anonymous().
					Call("POST", path, `{"email":"nobody","password":"1234567"}`).
					Refused(422, "email", "password")
				me.Service.Anonymous().Call("POST", path, `{}`).Refused(422, "email", "password")
				me.Service.Anonymous().
					Call("POST", path, map[string]string{"email": nodetest.Address(), "password": "short"}).
					Refused(422, "password")
				me.Service.Anonymous().
					Call("POST", path, map[string]string{"email": nodetest.Address(), "password": "ééééééé"}).
					Refused(422, "password")
				me.Service.Anonymous().
					Call("POST", path, map[string]string{"email": "Ada <ada@example.com>", "password": nodetest.Password}).
					Refused(422, "email")
				me.Service.Anonymous().
					Call("POST", path, map[string]string{"email": nodetest.Address(), "password": nodetest.Password, "displayName": strings.Repeat("x", 201)}).
					Refused(422, "displayName")
			}
		},
		"login refuses tokens that do not verify": func(t *testing.T, me *nodetest.Client) {
			for what, token := range badTokens(me.Token) {
				a := me.Service.Anonymous().Call("POST", "/api/v1/auth/login", map[string]string{"idToken": token}).Refused(401)
				if a.Header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s: no WWW-Authenticate", what)
				}
			}
			me.Service.Anonymous().Call("POST", "/api/v1/auth/login", `{}`).Refused(422, "idToken")
			me.Service.Anonymous().Call("POST", "/api/v1/auth/login", `{"idToken":""}`).Refused(422, "idToken")
			me.Service.Anonymous().Call("POST", "/api/v1/auth/signup", `{"idToken":"nonsense"}`).Refused(401)
		},
		"a sign-in with a provider is refused to who signed in with another": func(t *testing.T, me *nodetest.Client) {
			account := newAccount(me)
			for name, alias := range map[string]string{"google": "/auth/google", "github": "", "microsoft": "/auth/microsoft"} {
				path := "/api/v1/auth/signin/" + name
				signIn := func(idToken, providerName string) *nodetest.Answer {
					return me.Service.Anonymous().
						Call("POST", path, map[string]string{"idToken": idToken, "providerName": providerName})
				}
				signIn(account.token, name).Refused(422, "idToken")
				signIn(account.token, strings.ToUpper(name)+".com").Refused(422, "idToken")
				signIn(account.token, "facebook").Refused(422, "providerName")
				signIn("", "password").Refused(422, "idToken", "providerName")
				signIn(account.token+"x", name).Refused(401)
				me.Service.Anonymous().Call("POST", path, `{}`).Refused(422, "idToken", "providerName")
				if alias != "" {
					checkLegacy(t,
						me.Service.Anonymous().Call("POST", alias, map[string]string{"idToken": account.token}).Refused(422, "idToken"))
					me.Service.Anonymous().Call("POST", alias, `{}`).Refused(422, "idToken")
					me.Service.Anonymous().Call("POST", alias, `{"idToken":"nonsense"}`).Refused(401)
				}
			}
		},
	}.Run(t)
}
