package http_test

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/http/quota"
)

// limited starts a service with few requests a minute.
func limited(t *testing.T, free, anonymous, auth int) *nodetest.Service {
	t.Parallel()
	return nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", Now: stopped().now, ProxyNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Limits: quota.Limits{Plans: map[events.Plan]int{events.FreePlan: free}, Anonymous: anonymous, Auth: auth},
	}, nodetest.Log(t))
}

// budget is the limit that a response shows.
func budget(a *nodetest.Answer) (limit, remaining, reset int) {
	a.T.Helper()
	for name, n := range map[string]*int{"RateLimit-Limit": &limit, "RateLimit-Remaining": &remaining, "RateLimit-Reset": &reset} {
		var err error
		if values := a.Header.Values(name); len(values) != 1 {
			a.T.Fatalf("%s: %d with %s %q", a.Call, a.Status, name, values)
		} else if *n, err = strconv.Atoi(values[0]); err != nil {
			a.T.Fatal(err)
		}
	}
	if reset < 1 || reset > 15*60 {
		a.T.Errorf("%s: the limit resets in %d s", a.Call, reset)
	}
	return limit, remaining, reset
}

// isLimited checks that the response reports an exceeded limit.
func isLimited(a *nodetest.Answer) {
	a.T.Helper()
	a.Refused(429)
	saysWhenToRetry(a)
	if _, remaining, _ := budget(a); remaining != 0 {
		a.T.Errorf("%s: refused with %v", a.Call, a.Header)
	}
}

// saysWhenToRetry checks that Retry-After agrees with the other headers.
func saysWhenToRetry(a *nodetest.Answer) {
	a.T.Helper()
	if _, _, reset := budget(a); a.Header.Get("Retry-After") != strconv.Itoa(reset) {
		a.T.Errorf("%s: refused with %v", a.Call, a.Header)
	}
}

func TestTheLimitOfATenant(t *testing.T) {
	s := limited(t, 50, 1_000_000, 1_000_000)
	me := s.SignUp("me@example.com")
	another, you := me.NewTenant("another"), s.SignUp("you@example.com")
	other := you.NewTenant("other")
	machine := other.Machine("flags:read")
	left := func(a *nodetest.Answer) int {
		t.Helper()
		limit, remaining, _ := budget(a)
		if limit != 50 {
			t.Errorf("%s: a limit of %d", a.Call, limit)
		}
		return remaining
	}

	before := left(me.Call("GET", "/api/v1/flags", nil).Want(200))
	for _, a := range []*nodetest.Answer{
		me.Call("POST", "/api/v1/flags", map[string]string{"key": "f", "type": "boolean"}).Want(201),
		me.Call("POST", nodetest.FlagPath("f", "/evaluate"), `{}`).Want(200),
		me.Call("POST", "/api/v1/flags", `{`).Want(400),
		me.Call("GET", nodetest.FlagPath("none"), nil).Want(404),
		me.Call("GET", "/nowhere", nil).Want(404),
		me.Call("PUT", "/api/v1/flags", nil).Want(405),
		me.Call("POST", "/api/v1/flags", `{}`).Want(422),
		me.Call("GET", "/api/v1/tenants", nil, "X-Tenant-ID", "").Want(200), // counted for the person's first tenant
		me.Call("GET", "/api/v1/projects", nil, "X-Tenant-ID", "no-such-tenant").Want(403),
		me.Call("GET", "/health", nil).Want(200),
	} {
		before--
		if got := left(a); got != before {
			t.Errorf("%s: %d are left, want %d", a.Call, got, before)
		}
	}
	for range before {
		me.Call("POST", nodetest.FlagPath("f", "/evaluate"), `{}`).Want(200)
	}
	isLimited(me.Call("POST", nodetest.FlagPath("f", "/evaluate"), `{}`))
	for path, key := range map[string]string{ofrepPath + "/f": "f", ofrepPath: "", ofrepPath + "/%FF": "\uFFFD"} {
		a := me.Call("POST", path, `{"context":{}}`)
		isLimited(a)
		failedWith(a, 429, key, "GENERAL")
	}
	isLimited(me.Call("GET", "/api/v1/tenants", nil, "X-Tenant-ID", ""))
	isLimited(me.Call("GET", "/nowhere", nil))
	isLimited(another.Call("GET", "/api/v1/flags", nil)) // a person has one limit in all their tenants

	if left(other.Call("GET", "/api/v1/flags", nil).Want(200)) < 40 {
		t.Error("another tenant pays as well")
	}
	before = left(other.Call("GET", "/api/v1/flags", nil).Want(200))
	path := "/api/v1/tenants/" + other.Tenant
	for _, a := range []*nodetest.Answer{
		you.Call("GET", path+"/environments", nil, "X-Tenant-ID", "").Want(200), // the tenant of the path pays
		you.Call("GET", "/api/tenants/"+other.Tenant, nil, "X-Tenant-ID", other.Tenant).Want(200),
		you.Call("GET", path+"/usage", nil).Refused(400), // a tenant other than the header's
		other.Call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": "wrong", "newPassword": "a new password"}).Refused(422, "currentPassword"),
	} {
		before--
		if got := left(a); got != before {
			t.Errorf("%s: %d are left, want %d", a.Call, got, before)
		}
	}
	isLimited(me.Call("GET", "/api/v1/tenants/"+me.Tenant, nil, "X-Tenant-ID", other.Tenant))
	stranger := s.SignUp("stranger@example.com")
	stranger.Tenant = other.Tenant
	n := left(machine.Call("GET", "/api/v1/flags", nil).Want(200))
	stranger.Call("GET", "/api/v1/flags", nil).Want(403)
	stranger.Call("GET", path, nil).Want(403)
	if left(machine.Call("GET", "/api/v1/flags", nil).Want(200)) != n-1 {
		t.Error("a tenant pays for a stranger")
	}

	maker := s.SignUp("maker@example.com")
	machines := []*nodetest.Client{maker.Machine("flags:read"), maker.NewTenant("second").Machine("flags:read")}
	for i := range 50 - len(machines) { // each token has used one
		machines[i%2].Call("GET", "/api/v1/flags", nil).Want(200)
	}
	for _, machine := range machines { // of one person's free tenants
		isLimited(machine.Call("GET", "/api/v1/flags", nil))
	}
	maker.Call("GET", "/api/v1/flags", nil).Want(200)
}

func TestATenantHasTheLimitOfItsPlan(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		Now:         stopped().now,
		Limits: quota.Limits{
			Plans: map[events.Plan]int{events.FreePlan: 1000, events.SandboxPlan: 5}, Anonymous: 1_000_000, Auth: 1_000_000,
		},
	}, nodetest.Log(t))
	free := s.SignUp("me@example.com")
	sandbox := *free
	sandbox.Tenant = free.Call("POST", "/api/v1/tenants", `{"name":"sandbox","isSandbox":true}`).Want(201).Object()["id"].(string)
	machine := s.Anonymous()
	machine.Token = sandbox.Machine("flags:read").Token // which takes two: the client's and the token's
	for want := 2; want >= 0; want-- {
		who := &sandbox
		if want%2 == 0 {
			who = machine
		}
		if limit, remaining, _ := budget(
			who.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", sandbox.Tenant).Want(200),
		); limit != 5 ||
			remaining != want {
			t.Errorf("%d of %d are left, want %d of 5", remaining, limit, want)
		}
	}
	isLimited(sandbox.Call("GET", "/api/v1/flags", nil))
	isLimited(machine.Call("GET", "/api/v1/flags", nil, "X-Tenant-ID", sandbox.Tenant))
	if limit, _, _ := budget(free.Call("GET", "/api/v1/flags", nil).Want(200)); limit != 1000 {
		t.Errorf("a free tenant has a limit of %d", limit)
	}
}

func TestTheLimitOfAnAddress(t *testing.T) {
	s := limited(t, 1_000_000, 1000, 1000)
	me := s.SignUp("me@example.com")
	from := func(c *nodetest.Client, address, path string, headers ...string) *nodetest.Answer {
		t.Helper()
		return c.Call("GET", path, nil, append(headers, "X-Forwarded-For", address)...)
	}
	nobody := s.Anonymous()
	_, remaining, _ := budget(from(nobody, "192.0.2.1", "/health").Want(200))
	for range remaining {
		a := from(nobody, "203.0.113.9, 192.0.2.1", "/api/v1/flags", "Authorization", "Bearer guessed").Want(401)
		budget(a)
	}
	for _, path := range []string{"/health", "/api/v1/flags", "/nowhere", "/docs", "/"} {
		isLimited(from(nobody, "192.0.2.1", path))
		isLimited(from(nobody, "192.0.2.1", path, "Authorization", "Bearer guessed"))
	}
	from(me, "192.0.2.1", "/api/v1/flags").Want(200)
	from(nobody, "192.0.2.2", "/health").Want(200)
}

func TestGuessingSecrets(t *testing.T) {
	s := limited(t, 1_000_000, 1_000_000, 1_000_000)
	me := s.SignUp("me@example.com")
	known, secret := me.OAuthClient("c", "flags:read")
	trade := func(id, secret string) *nodetest.Answer {
		t.Helper()
		return me.Trade("grant_type", "client_credentials", "client_id", id, "client_secret", secret)
	}
	for _, id := range []string{known, "unknown"} {
		for i := range 50 {
			a := trade(id, "wrong")
			if want := map[bool]int{true: 401, false: 429}[i < 20]; a.Status != want {
				t.Fatalf("wrong secret %d of %s: %d, want %d", i+1, id, a.Status, want)
			}
			_, remaining, reset := budget(a)
			if a.Status == 429 &&
				(remaining != 0 || a.Header.Get("Retry-After") != strconv.Itoa(reset) || a.Object()["error"] != "temporarily_unavailable") {
				t.Errorf("refused with %v %s", a.Header, a.Body)
			}
		}
	}
	trade(known, secret).Want(200) // attackers cannot lock a client out
}

func TestGuessingPasswords(t *testing.T) {
	s := limited(t, 1_000_000, 1_000_000, 1_000_000)
	s.SignUp("known@example.com")
	s.SignUp("other@example.com")
	signIn := func(i int, email, password string) *nodetest.Answer {
		t.Helper()
		return s.Anonymous().
			Call("POST", "/auth/signin", map[string]string{"email": email, "password": password}, "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
	}
	answers := map[string]string{}
	for _, email := range []string{"known@example.com", "unknown@example.com"} {
		var text strings.Builder
		for range 50 {
			a := signIn(1, email, "wrong password")
			if a.Status == 429 {
				isLimited(a)
			}
			fmt.Fprintln(&text, a.Status, a.Object()["title"], a.Object()["type"] != "")
		}
		answers[email] = text.String()
	}
	if answers["known@example.com"] != answers["unknown@example.com"] {
		t.Errorf("a known address is answered otherwise than an unknown one:\n%v", answers)
	}
	if n := strings.Count(answers["known@example.com"], "429"); n != 30 {
		t.Errorf("%d of 50 wrong passwords were refused for their number", n)
	}
	isLimited(signIn(1, "known@example.com", nodetest.Password))
	isLimited(signIn(1, "KNOWN@example.com", nodetest.Password))
	signIn(1, "other@example.com", nodetest.Password).Want(200)
	signIn(99, "known@example.com", nodetest.Password).Want(200) // attackers elsewhere cannot lock the owner out
}

// A thief of mails has the link, but not the password.
func TestGuessingThePasswordWithALink(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "production")
	account := newAccount(s.Anonymous())
	link, token := linkTo(t, server, account.email, 1)
	verify := func(password string) *nodetest.Answer {
		return s.Anonymous().
			Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": password})
	}
	for range 19 {
		verify("wrong horse").Refused(422, "password")
	}
	postForm(s, link, url.Values{"password": {"wrong horse"}}, 422)
	isLimited(verify(nodetest.Password))
	postForm(s, link, url.Values{"password": {nodetest.Password}}, 429)
}

func TestGuessingOnesOwnPassword(t *testing.T) {
	s := limited(t, 1_000_000, 1_000_000, 1_000_000)
	me := s.SignUp("me@example.com")
	guess := func(headers ...string) *nodetest.Answer {
		return me.Call(
			"POST",
			"/api/v1/auth/update-password",
			map[string]string{"currentPassword": "wrong", "newPassword": "a new password"},
			headers...)
	}
	for range 20 {
		guess().Refused(422, "currentPassword")
	}
	isLimited(guess())
	isLimited(guess("Idempotency-Key", "k"))
}

// The mails that a network causes for other people, by sign-ups or links, have a daily limit, whatever a minute allows.
func TestMailsThatANetworkCausesInADay(t *testing.T) {
	t.Parallel()
	c := &clock{}
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development", ProxyNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Now: c.now,
		Limits: quota.Limits{Plans: nodetest.Generous.Plans, Anonymous: 1_000_000, Auth: 2},
	}, nodetest.Log(t))
	const signUp, forgot, subscribe, network = "/auth/signup", "/api/v1/auth/forgot-password", sandboxPath + "/subscribe", "192.0.2.1"
	ask := func(path, email, from string) *nodetest.Answer {
		c.add(31 * time.Second)
		body := map[string]string{"email": email}
		if strings.HasPrefix(path, "/auth/") {
			body["password"] = "correct horse"
		}
		return s.Anonymous().Call("POST", path, body, "X-Forwarded-For", from)
	}
	ask(signUp, "me@example.com", network).Want(201)
	ask(signUp, "me@example.com", network).Refused(409) // no mail
	ask(subscribe, "you@example.com", network).Want(202)
	for i := range 8 {
		ask(forgot, fmt.Sprintf("other%d@example.com", i), network).Want(200)
	}
	a := ask(signUp, "you@example.com", network).Refused(429)
	if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || wait < 23*60*60 ||
		a.Header.Get("RateLimit-Limit") != "10" {
		t.Errorf("refused with %v", a.Header)
	}
	ask(forgot, "me@example.com", network).Refused(429)
	ask(subscribe, "you@example.com", network).Refused(429)
	ask("/auth/signin", "me@example.com", network).Want(200)
	ask(signUp, "you@example.com", "192.0.2.2").Want(201)
	ask(signUp, "you@example.com", network).Refused(429)
	interrupted := outside(s.Anonymous()).Email // a link to verify it was sent before
	if a := ask(signUp, interrupted, network).Want(201); a.Header.Get("RateLimit-Limit") == "10" {
		t.Errorf("a sign-up that goes on shows the limit of mails: %v", a.Header)
	}
	c.add(24 * time.Hour)
	ask(signUp, "they@example.com", network).Want(201)
}
