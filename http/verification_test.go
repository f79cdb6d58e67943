package http_test

import (
	"slices"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
	"flagledger/events"
)

// verifyAddress verifies a person's address without a mail, and signs them in again.
func verifyAddress(c *nodetest.Client) *nodetest.Client {
	c.Service.T.Helper()
	sql(c.Service, `update keep.people set email_verified = true where user_id = $1`, c.UserID)
	verified := *c
	verified.Token = account{email: c.Email}.signIn(c).token
	return &verified
}

// openToUnverified lists the operations besides reads that a person with an unverified address may call: they change
// nothing, end the session, or send a link.
var openToUnverified = []string{
	"POST /api/v1/flags/{flagKey}/evaluate",
	"POST /api/v1/flags/evaluate",
	"POST /api/v1/flags/{flagKey}/rules/evaluate",
	"POST /api/v1/segments/{segmentKey}/check",
	"POST /ofrep/v1/evaluate/flags",
	"POST /ofrep/v1/evaluate/flags/{key}",
	"POST /api/v1/auth/logout",
	"POST /api/v1/auth/resend-verification",
}

// A person with an unverified address, as admin of their tenant, tries every operation: they may read it, but change
// nothing.
func TestWhatAnUnverifiedAccountMayDo(t *testing.T) {
	t.Parallel()
	s, _ := mailed(t, "production")
	me := s.SignUp(nodetest.Address())
	_, operations := me.Document()
	store := s.Store()
	before, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	isOpen := func(name string) bool {
		return strings.HasPrefix(name, "GET ") || slices.Contains(openToUnverified, current(name))
	}
	refused, let := 0, 0
	tryAll(
		me,
		operations,
		func(name, least string) bool { return least != "anyone" && !isOpen(name) },
		func(name, _ string, a *nodetest.Answer) {
			// the dashboard recognizes it by this
			if a.Status != 403 || !strings.Contains(string(a.Body), `"detail":"the e-mail address is not verified`) {
				t.Errorf("%s: %d: %s", name, a.Status, a.Body)
			}
			refused++
		},
	)
	written := s.Written(store, before,
		func(e events.Recorded) bool { return e.Actor.ID == me.UserID || strings.Contains(e.Stream, me.Tenant) })
	if len(written) > 0 {
		t.Errorf("calls that were refused have written %v", written)
	}
	tryAll(me, operations, func(name, least string) bool {
		return isOpen(name) && roleRank(least) <= roleRank("admin") && least != "anyone" && !slices.Contains(ending, name)
	}, func(name, _ string, a *nodetest.Answer) {
		if a.Status == 401 || a.Status == 403 || a.Status >= 500 {
			t.Errorf("%s: %d: %s", name, a.Status, a.Body)
		}
		let++
	})
	if refused < 50 || let < 30 {
		t.Errorf("%d operations were refused, and %d were not", refused, let)
	}
	me.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Refused(403)
	verifyAddress(me).CreateFlag("k", nil)
	me.Call("POST", nodetest.FlagPath("k", "/enable"), nil).Refused(403) // with an older token
	me.Evaluate("k", `{}`).Want(200)
	me.Call("POST", "/api/v1/auth/logout", nil).Want(200)
}

// A person who joined a tenant of others and became unverified, as after an update, sees nothing of it until their
// address is verified.
func TestAnUnverifiedAccountIsShownNoTenantOfOthers(t *testing.T) {
	t.Parallel()
	s, _ := mailed(t, "production")
	owner, me := verifyAddress(s.SignUp(nodetest.Address())), s.SignUp(nodetest.Address())
	shared := owner.NewTenant("shared")
	shared.Call("POST", usersPath(shared), map[string]string{"email": me.Email, "role": "admin"}).Want(201)
	verified := verifyAddress(me) // and joins
	inShared := *verified
	inShared.Tenant = shared.Tenant
	inShared.Stay()
	send := func(from *nodetest.Client, title string) string {
		t.Helper()
		return from.Call("POST", inboxPath+"/send", map[string]any{"userId": me.UserID, "tenantId": from.Tenant, "title": title, "type": "x"}).Want(201).Object()["id"].(string)
	}
	mine, theirs := send(verified, "mine"), send(shared, "theirs")
	tour := "/api/v1/users/" + owner.UserID + "/product-tours/flags"
	ticket := streamURL(&inShared)
	openStream(s.Anonymous(), ticket).next()
	shows := func(c *nodetest.Client, tenants, active, status, others int) {
		t.Helper()
		nodetest.Same(t, "tenants", len(c.Call("GET", "/api/v1/tenants", nil).Want(200).List()), tenants)
		body := checkBootstrap(t, c.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": c.Token}).Want(200),
			me.Email)
		nodetest.Same(t, "tenants of the bootstrap answer", len(body["tenants"].([]any)), tenants)
		nodetest.Same(t, "the active tenant", body["active_tenant_id"], []string{me.Tenant, shared.Tenant}[active])
		there := &nodetest.Client{Service: s, Token: c.Token, Tenant: shared.Tenant}
		nodetest.Same(t, "another's tenant", there.Call("GET", "/api/v1/tenants/"+shared.Tenant, nil).Status, status)
		nodetest.Same(t, "the notification of another's tenant", c.Call("GET", inboxPath+"/"+theirs, nil).Status, others)
		nodetest.Same(t, "the tour of another", c.Call("GET", tour, nil).Status, others)
		c.Call("GET", inboxPath+"/"+mine, nil).Want(200)
		withToken(c, c.Token).Call("GET", "/api/v1/billing/subscription", nil).Want(200) // of the first tenant
	}
	inShared.Call("GET", "/api/v1/flags", nil).Want(200)
	shows(verified, 2, 1, 200, 200)

	sql(s, `update keep.people set email_verified = false where user_id = $1`, me.UserID)
	unverified := *me
	unverified.Token = account{email: me.Email}.signIn(me).token
	shows(&unverified, 1, 0, 403, 404)
	inbox := unverified.Call("GET", inboxPath, nil).Want(200)
	inbox.Shows(map[string]any{"totalCount": 1, "unreadCount": 1})
	nodetest.Same(t, "the inbox", inbox.Object()["notifications"].([]any)[0].(map[string]any)["id"], mine)
	openStream(s.Anonymous(), streamURL(&unverified)).next()
	shows(verifyAddress(me), 2, 0, 200, 200)
}

func TestAnotherLinkThatVerifiesAnAddress(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "production")
	me := s.SignUp(nodetest.Address())
	_, first := linkTo(t, server, me.Email, 1)
	ask := func(headers ...string) *nodetest.Answer {
		return me.Call("POST", "/api/v1/auth/resend-verification", nil, headers...)
	}
	later := func() { // moves all requests and mails into the past by a minute
		sql(s, `update jobs.river_job set created_at = created_at - interval '61 seconds'`)
		sql(s, `update keep.mailed_tokens set issued_at = issued_at - interval '61 seconds'`)
	}
	ask().Refused(429)
	later()
	ask("Idempotency-Key", "k").Want(200).Shows(map[string]any{"success": true})
	ask("Idempotency-Key", "k").Want(200)
	_, second := linkTo(t, server, me.Email, 2)
	for range 3 {
		later()
		ask().Want(200)
	}
	later()
	ask().Refused(429)
	other := s.SignUp(nodetest.Address()) // not affected
	later()
	other.Call("POST", "/api/v1/auth/resend-verification", nil).Want(200)
	sql(s, `update jobs.river_job set created_at = created_at - interval '1 day'`)
	ask().Want(200)
	if first == second {
		t.Error("the second link is the first one")
	}
	s.Anonymous().
		Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": second, "password": nodetest.Password}).
		Want(200)
	(&nodetest.Client{Service: s, Token: account{email: me.Email}.signIn(me).token}).Call("POST", "/api/v1/auth/resend-verification", nil).
		Refused(409)
}

// Addresses that development trusts are unverified for production with the same data.
func TestDevelopmentProvesNoAddress(t *testing.T) {
	t.Parallel()
	email := nodetest.Address()
	server := mailtest.New(t, mailtest.Options{})
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		SuperUsers:  []string{email},
		Mail:        settings.Mail{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
	}, nodetest.Log(t))
	other, planter := s.SignUp(nodetest.Address()), s.SignUp(email)
	other.Call("POST", usersPath(other), map[string]string{"email": email, "role": "viewer"}).Want(201)
	resetIn := func(s *nodetest.Service, password string, mails int) *nodetest.Client {
		t.Helper()
		sql(s, `delete from keep.reset_requests`)
		sql(s, `delete from keep.mailed_tokens`)
		s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).Want(200)
		_, token := linkTo(t, server, email, mails)
		s.Anonymous().
			Call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": password}).
			Want(200)
		again := withToken(
			s.Anonymous(),
			s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": password}).Want(200).Object()["token"].(string),
		)
		again.Tenant = planter.Tenant
		return again
	}
	mayRead := func(c *nodetest.Client, path string, status int) {
		t.Helper()
		if a := c.Call("GET", path, nil); a.Status != status {
			t.Errorf("%s: %d, not %d: %s", path, a.Status, status, a.Body)
		}
	}
	id, secret := planter.OAuthClient("planted", "flags:read")
	server.Wait(t, email, 1) // the invitation

	planter = resetIn(s, "a new one for development", 2) // and loses nothing
	inOther := *planter
	inOther.Tenant = other.Tenant
	mayRead(planter, "/api/v1/admin/tenants", 200)
	mayRead(planter, "/api/v1/flags", 200)
	mayRead(&inOther, "/api/v1/flags", 200)
	planter.Trade("grant_type", "client_credentials", "client_id", id, "client_secret", secret).Want(200)

	other.Call("POST", "/api/v1/auth/resend-verification", nil).Want(200)
	_, token := linkTo(t, server, other.Email, 1)
	s.Anonymous().
		Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": nodetest.Password}).
		Want(200)

	c := s.Config
	c.Environment = "production"
	p := nodetest.Start(t, s.DatabaseURL, c, nodetest.Log(t))
	proved := *other
	proved.Service = p
	proved.Token = account{email: other.Email}.signIn(&proved).token
	proved.CreateFlag("mine", nil)
	signedIn := p.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": "a new one for development"}).Want(200).Object()["token"].(string)
	for _, token := range []string{planter.Token, signedIn} {
		there := &nodetest.Client{Service: p, Token: token, Tenant: planter.Tenant}
		mayRead(there, "/api/v1/flags", 200)
		there.Call("POST", "/api/v1/flags", `{"key":"k","type":"boolean"}`).Refused(403)
		if a := there.Call("GET", "/api/v1/admin/tenants", nil).
			Refused(403); !strings.Contains(string(a.Body), "not verified") {
			t.Errorf("an address that is not verified is told as %s", a.Body)
		}
		there.Tenant = other.Tenant
		mayRead(there, "/api/v1/flags", 403)
	}

	owner := resetIn(p, "the owner's own", 3)
	mayRead(owner, "/api/v1/flags", 403)
	owner.Tenant = other.Tenant
	mayRead(owner, "/api/v1/flags", 403)
	owner.Trade("grant_type", "client_credentials", "client_id", id, "client_secret", secret).Want(401)
	mayRead(owner, "/api/v1/admin/tenants", 200) // the address is on the list
}

// An account of an earlier release or another environment may have created and joined things before its address was
// verified. The person who reads its mails gets it like a new account.
func TestAResetThatVerifiesAnAddressDropsWhatWasMadeBefore(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "production")
	email, other := nodetest.Address(), verifyAddress(s.SignUp(nodetest.Address()))
	body := s.Anonymous().
		Call("POST", "/auth/signup", map[string]string{"email": email, "password": nodetest.Password, "displayName": "Not Me"}).
		Want(201).
		Object()
	user, first := body["user"].(map[string]any)["id"].(string), body["token"].(string)
	sql(s, `update keep.people set email_verified = true where user_id = $1`, user)
	before := account{email: email}.signIn(other)
	planter := withToken(other, before.token)
	planter.UserID, planter.Email = user, email
	planter.Tenant = planter.Call("GET", "/api/v1/tenants", nil).Want(200).List()[0]["id"].(string)

	// It is alone in the tenant as admin, with members, clients and flags.
	join := func(in *nodetest.Client, role string) *nodetest.Client {
		in.Call("POST", usersPath(in), map[string]string{"email": other.Email, "role": role}).Want(201)
		joined := *other
		joined.Token, joined.Tenant = account{email: other.Email}.signIn(other).token, in.Tenant
		return &joined
	}
	member := join(planter, "developer")
	invited := nodetest.Address()
	planter.Call("POST", usersPath(planter), map[string]string{"email": invited, "role": "admin"}).Want(201)
	machine := planter.Machine("flags:read", "flags:write")
	id, secret := planter.OAuthClient("planted", "flags:read")
	planter.CreateFlag("planted", nil)
	sandbox := newSandbox(planter)
	// With another admin in one tenant of its own and one of theirs.
	shared := planter.NewTenant("shared")
	admin := join(shared, "admin")
	joined := other.NewTenant("joined")
	joined.Call("POST", usersPath(joined), map[string]string{"email": email, "role": "viewer"}).Want(201)
	before = account{email: email}.signIn(other)
	planter.Token = before.token
	nodetest.Same(t, "tenants before", len(planter.Call("GET", "/api/v1/tenants", nil).Want(200).List()), 4)
	planter.Call("POST", devicesPath, map[string]any{"deviceToken": "planted-" + user, "deviceType": "web"}).Want(201)
	planter.Call("POST", inboxPath+"/send", map[string]any{"userId": user, "tenantId": planter.Tenant, "title": "planted", "type": "x"}).
		Want(201)
	sql(s, `update keep.people set email_verified = false where user_id = $1`, user)

	used := map[string]bool{}
	reset := func(password string) {
		t.Helper()
		sql(s, `delete from keep.reset_requests`)
		sql(s, `delete from keep.mailed_tokens`)
		s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).Want(200)
		var token string
		s.Eventually("the link is mailed", func() bool {
			for _, m := range server.Mails() {
				if found := mailedLink.FindStringSubmatch(m.Text); strings.EqualFold(m.To, email) && found != nil &&
					strings.Contains(found[1], "/reset-password") {
					token = found[2] // of the last one
				}
			}
			return token != "" && !used[token]
		})
		used[token] = true
		s.Anonymous().
			Call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": password}).
			Want(200)
	}
	reset("the owner's own")

	// All people with earlier access have lost it.
	for _, token := range []string{first, before.token} {
		withToken(planter, token).Call("GET", "/api/v1/tenants", nil).Refused(401)
	}
	s.Anonymous().Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": before.refresh}).Refused(401)
	s.Anonymous().
		Call("POST", "/auth/signin", map[string]string{"email": email, "password": nodetest.Password}).
		Refused(401)
	machine.Call("GET", "/api/v1/flags", nil).Refused(401)
	planter.Trade("grant_type", "client_credentials", "client_id", id, "client_secret", secret).Want(401)
	for _, gone := range []string{planter.Tenant, sandbox.Tenant} {
		in := *member
		in.Tenant = gone
		in.Call("GET", "/api/v1/flags", nil).Refused(403)
	}

	// The owner has an account like a new one, and a tenant without others.
	owner := func() *nodetest.Client {
		a := s.Anonymous().
			Call("POST", "/auth/signin", map[string]string{"email": email, "password": "the owner's own"}).
			Want(200).
			Object()
		nodetest.Same(t, "the name", a["user"].(map[string]any)["displayName"], "")
		me := withToken(planter, a["token"].(string))
		tenants := checkBootstrap(t, me.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": me.Token}).Want(200), email)["tenants"].([]any)
		if len(tenants) != 1 || tenants[0].(map[string]any)["tenant_name"] != "Personal workspace" ||
			tenants[0].(map[string]any)["role"] != "admin" {
			t.Fatalf("the tenants are %v", tenants)
		}
		me.UserID, me.Tenant = user, tenants[0].(map[string]any)["tenant_id"].(string)
		return me
	}
	me := owner()
	for _, old := range []string{planter.Tenant, shared.Tenant, sandbox.Tenant, joined.Tenant} {
		if me.Tenant == old {
			t.Errorf("the tenant %s is from before", old)
		}
	}
	nodetest.Same(t, "members", nodetest.Column(me.Call("GET", usersPath(me), nil).Want(200).List(), "email"),
		[]string{email})
	for _, path := range []string{"/api/v1/oauth/clients", "/api/v1/flags", devicesPath} {
		if list := me.Call("GET", path, nil).Want(200).List(); len(list) > 0 {
			t.Errorf("%s: %v", path, list)
		}
	}
	me.Call("GET", inboxPath, nil).Want(200).Shows(map[string]any{"totalCount": 0})
	me.CreateFlag("mine", nil)
	me.OAuthClient("mine", "flags:read")

	// Other people's tenants continue without the account.
	for _, c := range []*nodetest.Client{admin, joined} {
		nodetest.Same(t, "members", nodetest.Column(c.Call("GET", usersPath(c), nil).Want(200).List(), "email"),
			[]string{other.Email})
	}
	if late := verifyAddress(s.SignUp(invited)); len(late.Call("GET", "/api/v1/tenants", nil).Want(200).List()) != 1 {
		t.Error("somebody has joined a tenant that is gone")
	}

	// A further reset removes nothing: the address is verified.
	reset("the owner's own")
	me = owner()
	me.Call("GET", nodetest.FlagPath("mine"), nil).Want(200)
	nodetest.Same(t, "clients", len(me.Call("GET", "/api/v1/oauth/clients", nil).Want(200).List()), 1)
}
