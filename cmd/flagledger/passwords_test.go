package main

import (
	"encoding/base64"
	"encoding/json"

	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/commands/mail/mailtest"
	"flagledger/events/eventstore/esdbtest"
	"flagledger/migrations/pgtest"
)

// mailed is a service whose mails arrive.
func mailed(t *testing.T, environment string) (*service, *mailtest.Server) {
	t.Helper()
	server := mailtest.New(t, mailtest.Options{})
	c := config{EventStoreURL: engineURL(t), Environment: environment, Mail: mailSettings{URL: "smtp://" + server.Addr + "?from=flags@example.com"}}
	return serviceWith(t, pgtest.URL(t), c, testLog(t)), server
}

var mailedLink = regexp.MustCompile(`(?m)^(http://\S+\?token=(\S+))$`)

// linkTo gives the link and the token of the nth mail to an address.
func linkTo(t *testing.T, server *mailtest.Server, email string, n int) (link, token string) {
	t.Helper()
	found := mailedLink.FindStringSubmatch(server.Wait(t, email, n).Text)
	if found == nil {
		t.Fatalf("no link in %+v", server.Mails())
	}
	return found[1], found[2]
}

// form opens a page and sends its form.
func (s *service) form(link string, fields url.Values, want int) string {
	s.t.Helper()
	page := s.anonymous().call("GET", strings.TrimPrefix(link, s.url), nil).want(200)
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := page.header.Get(name); got != value {
			s.t.Errorf("%s: %s is %q", page.call, name, got)
		}
	}
	if policy := page.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || !strings.Contains(string(page.body), `<form method="post">`) {
		s.t.Errorf("%s: %q, %s", page.call, policy, page.body)
	}
	a := s.anonymous().call("POST", strings.TrimPrefix(link, s.url), fields.Encode(), "Content-Type", "application/x-www-form-urlencoded").want(want)
	if a.header.Get("Content-Type") != "text/html; charset=utf-8" {
		s.t.Errorf("%s: %s", a.call, a.header)
	}
	return string(a.body)
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "development")
	second := s.secondNode()
	const next = "another horse"
	succeeded := map[string]any{"success": true}
	signIn := func(s *service, email, password string) *answer {
		return s.anonymous().call("POST", "/auth/signin", map[string]string{"email": email, "password": password})
	}
	for name, test := range map[string]func(t *testing.T, s *service, me *client){
		"a forgotten password is reset with the mailed link's token, once, and all sessions end on every node": func(t *testing.T, s *service, me *client) {
			account := me.account()
			other := account.signIn(me)
			mine, there := me.with(account.token), &client{s: second.in(t), token: other.token}
			mine.call("GET", "/api/v1/tenants", nil).want(200)
			there.call("GET", "/api/v1/tenants", nil).want(200)
			s.anonymous().call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": strings.ToUpper(account.email)}).want(200).shows(succeeded)
			link, token := linkTo(t, server, account.email, 1)
			same(t, "the link", link, s.url+"/reset-password?token="+token)

			reset := func(token, password string) *answer {
				return s.anonymous().call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": password})
			}
			reset(token, "short").refused(422, "newPassword")
			reset("nonsense", "short").refused(422, "token", "newPassword")
			reset(token, next).want(200).shows(succeeded)
			mine.call("GET", "/api/v1/tenants", nil).refused(401)
			mine.call("POST", flagPath("any", "/evaluate"), `{}`, "X-Tenant-ID", "any").refused(401)
			there.s.eventually("the other node refuses the token", func() bool { return there.call("GET", "/api/v1/tenants", nil).status == 401 })
			for _, refresh := range []string{account.refresh, other.refresh} {
				s.anonymous().call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": refresh}).refused(401)
			}
			reset(token, next).refused(422, "token")
			signIn(s, account.email, password).refused(401)
			token = signIn(s, account.email, next).want(200).object()["token"].(string)
			me.with(token).call("GET", "/api/v1/tenants", nil).want(200)
			there.with(token).call("GET", "/api/v1/tenants", nil).want(200)
		},
		"a snapshot made anew knows which sessions have ended": func(t *testing.T, s *service, me *client) {
			account := me.account()
			s.anonymous().call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).want(200)
			_, token := linkTo(t, server, account.email, 1)
			s.anonymous().call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": next}).want(200)
			third := s.secondNode()
			third.anonymous().with(account.token).call("GET", "/api/v1/tenants", nil).refused(401)
		},
		"the page of the link sets the password": func(t *testing.T, s *service, me *client) {
			account := me.account()
			s.anonymous().call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).want(200)
			link, _ := linkTo(t, server, account.email, 1)
			if page := s.form(link, url.Values{"newPassword": {"short"}}, 422); !strings.Contains(page, "must be at least 8 characters") || !strings.Contains(page, "<form") {
				t.Errorf("a short password: %s", page)
			}
			if page := s.form(link, url.Values{"newPassword": {next}}, 200); !strings.Contains(page, "You can sign in with it now.") {
				t.Errorf("it is set: %s", page)
			}
			signIn(s, account.email, next).want(200)
			if page := s.form(link, url.Values{"newPassword": {next}}, 422); !strings.Contains(page, "has been used or has expired") || strings.Contains(page, "<form") {
				t.Errorf("a used link: %s", page)
			}
			s.form("/reset-password", url.Values{"newPassword": {next}}, 422)
			s.form("/reset-password?token="+url.QueryEscape(`"><script>`), url.Values{"newPassword": {next}}, 422)
			s.anonymous().call("POST", "/reset-password?token=x", strings.Repeat("x", 1<<20), "Content-Type", "application/x-www-form-urlencoded").refused(400)
		},
		"a forgotten password is answered alike for any address": func(t *testing.T, s *service, me *client) {
			account := me.account()
			known := s.anonymous().call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).want(200)
			for _, email := range []string{address(), "nobody", " ", strings.Repeat("x", 10_000)} {
				a := s.anonymous().call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).want(200)
				if string(a.body) != string(known.body) {
					t.Errorf("%s, and for a known address %s", a.body, known.body)
				}
			}
			s.anonymous().call("POST", "/api/v1/auth/forgot-password", `{}`).refused(422, "email")
		},
		"a changed password ends the other sessions": func(_ *testing.T, s *service, me *client) {
			account := me.account()
			other := account.signIn(me)
			mine := me.with(account.token)
			update := func(current, password string) *answer {
				return mine.call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": current, "newPassword": password})
			}
			update("wrong horse", next).refused(422, "currentPassword")
			update("", "short").refused(422, "currentPassword", "newPassword")
			update(password, "short").refused(422, "newPassword")
			mine.call("POST", "/api/v1/auth/update-password", `{}`).refused(422, "currentPassword", "newPassword")
			me.with("").call("POST", "/api/v1/auth/update-password", `{}`).refused(401)
			me.with(other.token).call("GET", "/api/v1/tenants", nil).want(200)

			update(password, next).want(200).shows(succeeded)
			mine.call("GET", "/api/v1/tenants", nil).want(200)
			me.with(other.token).call("GET", "/api/v1/tenants", nil).refused(401)
			s.anonymous().call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": other.refresh}).refused(401)
			refreshed := s.anonymous().call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).want(200).object()
			me.with(refreshed["token"].(string)).call("GET", "/api/v1/tenants", nil).want(200)
			signIn(s, account.email, password).refused(401)
			latest := signIn(s, account.email, next).want(200).object()["token"].(string)
			me.with(latest).call("GET", "/api/v1/tenants", nil).want(200)

			me.with(latest).call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": next, "newPassword": password}).want(200)
			mine.call("GET", "/api/v1/tenants", nil).refused(401)
			me.with(latest).call("GET", "/api/v1/tenants", nil).want(200)
		},
		"guesses of the current password are limited": func(_ *testing.T, _ *service, me *client) {
			mine := me.with(me.account().token)
			for range 20 {
				mine.call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": "wrong horse", "newPassword": next}).refused(422, "currentPassword")
			}
			mine.call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": password, "newPassword": next}).refused(429)
		},
		"in development addresses are taken as verified, and no mail asks": func(t *testing.T, _ *service, me *client) {
			account := me.account()
			if !verified(t, account.token) {
				t.Error("the address is not verified")
			}
			me.call("POST", "/api/v1/auth/verify-email", `{"token":"nonsense","password":"x"}`).refused(422, "token")
			for _, m := range server.Mails() {
				if strings.EqualFold(m.To, account.email) {
					t.Errorf("got %+v", m)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.in(t)
			test(t, s, s.anonymous())
		})
	}
}

// While the sessions cannot be ended the password stays as it is, so that the same request can be made again.
func TestPasswordsStayDuringAnOutageOfTheEventStore(t *testing.T) {
	t.Parallel()
	mails, store := mailtest.New(t, mailtest.Options{}), esdbtest.New(t)
	c := config{EventStoreURL: store.URL(), Environment: "development", Mail: mailSettings{URL: "smtp://" + mails.Addr + "?from=flags@example.com"}}
	s := serviceWith(t, pgtest.URL(t), c, testLog(t))
	account := s.anonymous().account()
	mine, stolen := s.anonymous().with(account.token), s.anonymous().with(account.signIn(s.anonymous()).token)
	const second, third = "second horse", "third horse"
	update := func() *answer {
		return mine.call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": password, "newPassword": second}, "Idempotency-Key", "once")
	}
	store.Stop()
	update().refused(503)
	store.Start()
	s.eventually("the same request is answered", func() bool { return update().status == 200 })
	s.eventually("a stolen token is refused", func() bool { return stolen.call("GET", "/api/v1/tenants", nil).status == 401 })
	mine.call("GET", "/api/v1/tenants", nil).want(200)

	s.anonymous().call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).want(200)
	_, token := linkTo(t, mails, account.email, 1)
	reset := func() *answer {
		return s.anonymous().call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": third})
	}
	signIn := func(password string) *answer {
		return s.anonymous().call("POST", "/auth/signin", map[string]string{"email": account.email, "password": password})
	}
	store.Stop()
	reset().refused(503)
	signIn(second).want(200)
	store.Start()
	s.eventually("the link is good", func() bool { return reset().status == 200 })
	s.eventually("the session has ended", func() bool { return mine.call("GET", "/api/v1/tenants", nil).status == 401 })
	signIn(second).refused(401)
	signIn(third).want(200)
}

// A refresh that cannot be answered does not use the token up, and one of a stolen token ends its session as soon as that can be done.
func TestRefreshesDuringAnOutageOfTheEventStore(t *testing.T) {
	t.Parallel()
	book, store := &logBook{}, esdbtest.New(t)
	s := serviceWith(t, pgtest.URL(t), config{EventStoreURL: store.URL(), Environment: "development"}, book.logger())
	nobody := s.anonymous()
	account := nobody.account()
	refresh := func(token string) *answer {
		return s.anonymous().call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": token})
	}
	// Of somebody without a tenant the event store is asked.
	first := nobody.with(account.token).call("GET", "/api/v1/tenants", nil).want(200).list()[0]["id"].(string)
	nobody.with(account.token).call("DELETE", "/api/v1/tenants/"+first, nil).want(204)
	store.Stop()
	refresh(account.refresh).refused(503)
	store.Start()
	var next map[string]any
	s.eventually("the same token is traded", func() bool {
		a := refresh(account.refresh)
		if a.status == 200 {
			next = a.object()
		}
		return a.status == 200
	})
	store.Stop()
	refresh(account.refresh).refused(503) // a second time
	store.Start()
	var a *answer
	s.eventually("the session has ended", func() bool { a = refresh(account.refresh); return a.status == 401 })
	s.eventually("its ID token is refused", func() bool {
		return nobody.with(next["token"].(string)).call("GET", "/api/v1/tenants", nil).status == 401
	})
	refresh(next["refreshToken"].(string)).refused(401)
	id := strings.TrimPrefix(a.object()["instance"].(string), "urn:uuid:")
	if !regexp.MustCompile(`used twice.*"request":"` + id + `"`).MatchString(book.String()) {
		t.Errorf("the log does not tell that it was the request %s", id)
	}
}

// verified tells what an ID token says of the address.
func verified(t *testing.T, token string) bool {
	t.Helper()
	var said struct {
		EmailVerified *bool `json:"email_verified"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(payload, &said)
	}
	if err != nil || said.EmailVerified == nil {
		t.Fatalf("the token does not tell: %v", err)
	}
	return *said.EmailVerified
}

func TestAddressesAreVerifiedInProduction(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "production")
	owner := s.signUp(address())
	account := owner.account()
	mine := owner.with(account.token)
	if verified(t, account.token) {
		t.Error("an address is taken on trust")
	}
	owner.call("POST", "/api/v1/tenants/"+owner.tenant+"/users", map[string]string{"email": account.email, "role": "viewer"}).want(201)
	tenants := func(token string) int {
		return len(checkBootstrap(t, mine.call("POST", "/api/v1/auth/login", map[string]string{"idToken": token}).want(200), account.email)["tenants"].([]any))
	}
	same(t, "tenants of a person with an address of who knows whom", tenants(account.token), 1)

	link, token := linkTo(t, server, account.email, 1)
	same(t, "the link", link, s.url+"/verify-email?token="+token)
	s.anonymous().call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": password}).refused(422, "token")
	for _, wrong := range []string{"", "wrong horse"} { // of somebody who has not signed up, but reads the mails
		if page := s.form(link, url.Values{"password": {wrong}}, 422); !strings.Contains(page, "The password is") || !strings.Contains(page, "<form") {
			t.Errorf("a wrong password: %s", page)
		}
	}
	if verified(t, account.signIn(owner).token) {
		t.Error("somebody who does not know the password has verified the address")
	}
	if page := s.form(link, url.Values{"password": {password}}, 200); !strings.Contains(page, "confirmed") {
		t.Errorf("the address is confirmed: %s", page)
	}
	if page := s.form(link, url.Values{"password": {password}}, 422); !strings.Contains(page, "has been used or has expired") {
		t.Errorf("a used link: %s", page)
	}
	refreshed := account.signIn(owner).token
	if !verified(t, refreshed) {
		t.Error("the address is not verified")
	}
	same(t, "tenants of a person with a verified address", tenants(refreshed), 2)

	third := owner.account()
	_, token = linkTo(t, server, third.email, 1)
	verify := func(password string) *answer {
		return s.anonymous().call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": password})
	}
	verify("").refused(422, "password")
	verify("wrong horse").refused(422, "password")
	verify(password).want(200).shows(map[string]any{"success": true})
	verify(password).refused(422, "token")
	s.anonymous().call("POST", "/api/v1/auth/verify-email", `{}`).refused(422, "token", "password")
}

// In body and in time: nobody learns whether an address is known.
func TestKnownAndUnknownAddressesAreAnsweredAlike(t *testing.T) {
	s, _ := mailed(t, "production")
	calls := map[string]func(email string) *answer{
		"sign-in": func(email string) *answer {
			return s.anonymous().call("POST", "/auth/signin", map[string]string{"email": email, "password": "wrong horse"}).refused(401)
		},
		"reset": func(email string) *answer {
			return s.anonymous().call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).want(200)
		},
	}
	const rounds = 15
	took := map[string]map[bool][]time.Duration{"sign-in": {}, "reset": {}}
	var known []string
	for range rounds {
		known = append(known, s.anonymous().account().email)
	}
	for round := range rounds {
		for name, call := range calls {
			var answers [2]*answer
			for i, email := range []string{known[round], address()} {
				began := time.Now()
				answers[i] = call(email)
				took[name][i == 0] = append(took[name][i == 0], time.Since(began))
			}
			if name == "sign-in" {
				sameProblem(t, answers[0], answers[1])
			} else if string(answers[0].body) != string(answers[1].body) {
				t.Errorf("%s and %s", answers[0].body, answers[1].body)
			}
			for header := range answers[0].header {
				if len(answers[1].header[header]) == 0 {
					t.Errorf("%s: only a known address is answered with %s", name, header)
				}
			}
		}
	}
	for name, times := range took {
		a, b := slices.Min(times[true]), slices.Min(times[false]) // what else the machine does only adds
		t.Logf("%s: %v for known, %v for unknown addresses", name, a, b)
		if far := max(a, b) / 2; (a - b).Abs() > far+5*time.Millisecond {
			t.Errorf("%s takes %v for a known address and %v for an unknown one", name, a, b)
		}
	}
}

func TestMailsOfProductionWithoutAServer(t *testing.T) {
	t.Parallel()
	book := &logBook{}
	s := serviceWith(t, pgtest.URL(t), config{EventStoreURL: engineURL(t), Environment: "production"}, book.logger())
	if !strings.Contains(book.String(), "there is no FLAGLEDGER_SMTP_URL") {
		t.Error("the log does not say at the start that mails are not sent")
	}
	email := s.anonymous().account().email
	s.anonymous().call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).want(200)
	s.eventually("the log tells of both mails", func() bool {
		return strings.Contains(book.String(), "Confirm your e-mail address") && strings.Contains(book.String(), "A new password")
	})
	if strings.Contains(book.String(), "token=") || strings.Contains(book.String(), email) {
		t.Errorf("the log shows a secret")
	}
}

func TestMailsOfDevelopmentStandInTheLog(t *testing.T) {
	t.Parallel()
	book := &logBook{}
	s := serviceWith(t, pgtest.URL(t), config{EventStoreURL: engineURL(t), Environment: "development"}, book.logger())
	email := s.anonymous().account().email
	s.anonymous().call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).want(200)
	s.eventually("the log shows the link", func() bool { return strings.Contains(book.String(), s.url+"/reset-password?token=") })
}
