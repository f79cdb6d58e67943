package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"flagledger/events"
	"flagledger/http/limit"
	"flagledger/migrations/pgtest"
)

// limited starts a service with few requests a minute.
func limited(t *testing.T, free, anonymous, auth int) *service {
	t.Parallel()
	return serviceWith(t, pgtest.URL(t), config{
		EventStoreURL: engineURL(t), Environment: "development", proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		limits: limit.Limits{Plans: map[events.Plan]int{events.FreePlan: free}, Anonymous: anonymous, Auth: auth},
	}, testLog(t))
}

// budget is what an answer shows of its limit.
func (a *answer) budget() (limit, remaining, reset int) {
	a.t.Helper()
	for name, n := range map[string]*int{"RateLimit-Limit": &limit, "RateLimit-Remaining": &remaining, "RateLimit-Reset": &reset} {
		var err error
		if values := a.header.Values(name); len(values) != 1 {
			a.t.Fatalf("%s: %d with %s %q", a.call, a.status, name, values)
		} else if *n, err = strconv.Atoi(values[0]); err != nil {
			a.t.Fatal(err)
		}
	}
	if reset < 1 || reset > 15*60 {
		a.t.Errorf("%s: the limit resets in %d s", a.call, reset)
	}
	return limit, remaining, reset
}

// limited checks that the answer refuses because of a limit.
func (a *answer) limited() {
	a.t.Helper()
	a.refused(429)
	a.waits()
	if _, remaining, _ := a.budget(); remaining != 0 {
		a.t.Errorf("%s: refused with %v", a.call, a.header)
	}
}

// waits checks that Retry-After says the same as the other headers.
func (a *answer) waits() {
	a.t.Helper()
	if _, _, reset := a.budget(); a.header.Get("Retry-After") != strconv.Itoa(reset) {
		a.t.Errorf("%s: refused with %v", a.call, a.header)
	}
}

func TestTheLimitOfATenant(t *testing.T) {
	s := limited(t, 50, 1_000_000, 1_000_000)
	me := s.signUp("me@example.com")
	other := me.newTenant("other")
	left := func(a *answer) int {
		t.Helper()
		limit, remaining, _ := a.budget()
		if limit != 50 {
			t.Errorf("%s: a limit of %d", a.call, limit)
		}
		return remaining
	}

	before := left(me.call("GET", "/api/v1/flags", nil).want(200))
	for _, a := range []*answer{
		me.call("POST", "/api/v1/flags", map[string]string{"key": "f", "type": "boolean"}).want(201),
		me.call("POST", flagPath("f", "/evaluate"), `{}`).want(200),
		me.call("POST", "/api/v1/flags", `{`).want(400),
		me.call("GET", flagPath("none"), nil).want(404),
		me.call("GET", "/nowhere", nil).want(404),
		me.call("PUT", "/api/v1/flags", nil).want(405),
		me.call("POST", "/api/v1/flags", `{}`).want(422),
		me.call("GET", "/api/v1/tenants", nil, "X-Tenant-ID", "").want(200), // counted for the person's first tenant
		me.call("GET", "/api/v1/projects", nil, "X-Tenant-ID", "no-such-tenant").want(403),
		me.call("GET", "/health", nil).want(200),
	} {
		before--
		if got := left(a); got != before {
			t.Errorf("%s: %d are left, want %d", a.call, got, before)
		}
	}
	for range before {
		me.call("POST", flagPath("f", "/evaluate"), `{}`).want(200)
	}
	me.call("POST", flagPath("f", "/evaluate"), `{}`).limited()
	for path, key := range map[string]string{ofrepPath + "/f": "f", ofrepPath: "", ofrepPath + "/%FF": "\uFFFD"} {
		a := me.call("POST", path, `{"context":{}}`)
		a.limited()
		a.failed(429, key, "GENERAL")
	}
	me.call("GET", "/api/v1/tenants", nil, "X-Tenant-ID", "").limited()
	me.call("GET", "/nowhere", nil).limited()

	if left(other.call("GET", "/api/v1/flags", nil).want(200)) < 40 {
		t.Error("another tenant pays as well")
	}
	before = left(other.call("GET", "/api/v1/flags", nil).want(200))
	path := "/api/v1/tenants/" + other.tenant
	for _, a := range []*answer{
		me.call("GET", path+"/environments", nil, "X-Tenant-ID", "").want(200), // the tenant of the path pays
		me.call("GET", "/api/tenants/"+other.tenant, nil, "X-Tenant-ID", other.tenant).want(200),
		me.call("GET", path+"/usage", nil).refused(400), // which is not the tenant of the header
		other.call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": "wrong", "newPassword": "a new password"}).refused(422, "currentPassword"),
	} {
		before--
		if got := left(a); got != before {
			t.Errorf("%s: %d are left, want %d", a.call, got, before)
		}
	}
	me.call("GET", "/api/v1/tenants/"+me.tenant, nil, "X-Tenant-ID", other.tenant).limited()
	stranger := s.signUp("stranger@example.com")
	stranger.tenant = other.tenant
	n := left(other.call("GET", "/api/v1/flags", nil).want(200))
	stranger.call("GET", "/api/v1/flags", nil).want(403)
	stranger.call("GET", path, nil).want(403)
	if left(other.call("GET", "/api/v1/flags", nil).want(200)) != n-1 {
		t.Error("a tenant pays for a stranger")
	}
}

func TestATenantHasTheLimitOfItsPlan(t *testing.T) {
	t.Parallel()
	s := serviceWith(t, pgtest.URL(t), config{
		EventStoreURL: engineURL(t), Environment: "development",
		limits: limit.Limits{
			Plans: map[events.Plan]int{events.FreePlan: 1000, events.SandboxPlan: 5}, Anonymous: 1_000_000, Auth: 1_000_000,
		},
	}, testLog(t))
	free := s.signUp("me@example.com")
	sandbox := *free
	sandbox.tenant = free.call("POST", "/api/v1/tenants", `{"name":"sandbox","isSandbox":true}`).want(201).object()["id"].(string)
	machine := s.anonymous()
	machine.token = sandbox.machine("flags:read").token // which takes the first one
	for want := 3; want >= 0; want-- {
		who := &sandbox
		if want%2 == 0 {
			who = machine
		}
		if limit, remaining, _ := who.call("GET", "/api/v1/flags", nil, "X-Tenant-ID", sandbox.tenant).want(200).budget(); limit != 5 || remaining != want {
			t.Errorf("%d of %d are left, want %d of 5", remaining, limit, want)
		}
	}
	sandbox.call("GET", "/api/v1/flags", nil).limited()
	machine.call("GET", "/api/v1/flags", nil, "X-Tenant-ID", sandbox.tenant).limited()
	if limit, _, _ := free.call("GET", "/api/v1/flags", nil).want(200).budget(); limit != 1000 {
		t.Errorf("a free tenant has a limit of %d", limit)
	}
}

func TestTheLimitOfAnAddress(t *testing.T) {
	s := limited(t, 1_000_000, 1000, 1000)
	me := s.signUp("me@example.com")
	from := func(c *client, address, path string, headers ...string) *answer {
		t.Helper()
		return c.call("GET", path, nil, append(headers, "X-Forwarded-For", address)...)
	}
	nobody := s.anonymous()
	_, remaining, _ := from(nobody, "192.0.2.1", "/health").want(200).budget()
	for range remaining {
		a := from(nobody, "203.0.113.9, 192.0.2.1", "/api/v1/flags", "Authorization", "Bearer guessed").want(401)
		a.budget()
	}
	for _, path := range []string{"/health", "/api/v1/flags", "/nowhere", "/docs", "/"} {
		from(nobody, "192.0.2.1", path).limited()
		from(nobody, "192.0.2.1", path, "Authorization", "Bearer guessed").limited()
	}
	from(me, "192.0.2.1", "/api/v1/flags").want(200)
	from(nobody, "192.0.2.2", "/health").want(200)
}

func TestGuessingSecrets(t *testing.T) {
	s := limited(t, 1_000_000, 1_000_000, 1_000_000)
	me := s.signUp("me@example.com")
	known, secret := me.oauthClient("c", "flags:read")
	trade := func(id, secret string) *answer {
		t.Helper()
		return me.trade("grant_type", "client_credentials", "client_id", id, "client_secret", secret)
	}
	for _, id := range []string{known, "unknown"} {
		for i := range 50 {
			a := trade(id, "wrong")
			if want := map[bool]int{true: 401, false: 429}[i < 20]; a.status != want {
				t.Fatalf("wrong secret %d of %s: %d, want %d", i+1, id, a.status, want)
			}
			_, remaining, reset := a.budget()
			if a.status == 429 && (remaining != 0 || a.header.Get("Retry-After") != strconv.Itoa(reset) || a.object()["error"] != "temporarily_unavailable") {
				t.Errorf("refused with %v %s", a.header, a.body)
			}
		}
	}
	trade(known, secret).want(200) // nobody can shut a client out
}

func TestGuessingPasswords(t *testing.T) {
	s := limited(t, 1_000_000, 1_000_000, 1_000_000)
	s.signUp("known@example.com")
	s.signUp("other@example.com")
	signIn := func(i int, email, password string) *answer {
		t.Helper()
		return s.anonymous().call("POST", "/auth/signin", map[string]string{"email": email, "password": password}, "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
	}
	answers := map[string]string{}
	for _, email := range []string{"known@example.com", "unknown@example.com"} {
		var text strings.Builder
		for i := range 50 {
			a := signIn(i, email, "wrong password")
			if a.status == 429 {
				a.limited()
			}
			fmt.Fprintln(&text, a.status, a.object()["title"], a.object()["type"] != "")
		}
		answers[email] = text.String()
	}
	if answers["known@example.com"] != answers["unknown@example.com"] {
		t.Errorf("a known address is answered otherwise than an unknown one:\n%v", answers)
	}
	if n := strings.Count(answers["known@example.com"], "429"); n != 30 {
		t.Errorf("%d of 50 wrong passwords were refused for their number", n)
	}
	signIn(99, "known@example.com", password).limited()
	signIn(99, "KNOWN@example.com", password).limited()
	signIn(99, "other@example.com", password).want(200)
}

func TestGuessingOnesOwnPassword(t *testing.T) {
	s := limited(t, 1_000_000, 1_000_000, 1_000_000)
	me := s.signUp("me@example.com")
	guess := func(headers ...string) *answer {
		return me.call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": "wrong", "newPassword": "a new password"}, headers...)
	}
	for range 20 {
		guess().refused(422, "currentPassword")
	}
	guess().limited()
	guess("Idempotency-Key", "k").limited()
}
