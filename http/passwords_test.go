package http_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
)

// mailed starts a service with a mail server.
func mailed(t *testing.T, environment string) (*nodetest.Service, *mailtest.Server) {
	t.Helper()
	return mailedHashing(t, environment, 0)
}

// mailedHashing is mailed with a memory size in KiB for hashes.
func mailedHashing(t *testing.T, environment string, hashMemory uint32) (*nodetest.Service, *mailtest.Server) {
	t.Helper()
	server := mailtest.New(t, mailtest.Options{})
	c := settings.Config{
		Environment: environment,
		HashMemory:  hashMemory,
		Mail:        settings.Mail{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
	}
	return nodetest.Start(t, nodetest.Database(t), c, nodetest.Log(t)), server
}

var mailedLink = regexp.MustCompile(`(?m)^(http://\S+\?token=(\S+))$`)

// linkTo returns the link and the token of the nth mail to an address.
func linkTo(t *testing.T, server *mailtest.Server, email string, n int) (link, token string) {
	t.Helper()
	found := mailedLink.FindStringSubmatch(server.Wait(t, email, n).Text)
	if found == nil {
		t.Fatalf("no link in %+v", server.Mails())
	}
	return found[1], found[2]
}

// postForm opens a page and sends its form.
func postForm(s *nodetest.Service, link string, fields url.Values, want int) string {
	s.T.Helper()
	page := s.Anonymous().Call("GET", strings.TrimPrefix(link, s.URL), nil).Want(200)
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := page.Header.Get(name); got != value {
			s.T.Errorf("%s: %s is %q", page.Call, name, got)
		}
	}
	if policy := page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") ||
		!strings.Contains(string(page.Body), `<form method="post">`) {
		s.T.Errorf("%s: %q, %s", page.Call, policy, page.Body)
	}
	a := s.Anonymous().
		Call("POST", strings.TrimPrefix(link, s.URL), fields.Encode(), "Content-Type", "application/x-www-form-urlencoded").
		Want(want)
	if a.Header.Get("Content-Type") != "text/html; charset=utf-8" ||
		want == 429 && a.Header.Get("Retry-After") != a.Header.Get("RateLimit-Reset") {
		s.T.Errorf("%s: %s", a.Call, a.Header)
	}
	return string(a.Body)
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "development")
	second := s.SecondNode()
	const next = "another horse"
	succeeded := map[string]any{"success": true}
	signIn := func(s *nodetest.Service, email, password string) *nodetest.Answer {
		return s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": password})
	}
	for name, test := range map[string]func(t *testing.T, s *nodetest.Service, me *nodetest.Client){
		"a forgotten password is reset with the mailed link's token, once, and all sessions end on every node": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			other := account.signIn(me)
			mine, there := withToken(me, account.token), &nodetest.Client{Service: second.In(t), Token: other.token}
			mine.Call("GET", "/api/v1/tenants", nil).Want(200)
			there.Call("GET", "/api/v1/tenants", nil).Want(200)
			s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": strings.ToUpper(account.email)}).Want(200).Shows(succeeded)
			link, token := linkTo(t, server, account.email, 1)
			nodetest.Same(t, "the link", link, s.URL+"/reset-password?token="+token)

			reset := func(token, password string) *nodetest.Answer {
				return s.Anonymous().Call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": password})
			}
			reset(token, "short").Refused(422, "newPassword")
			reset("nonsense", "short").Refused(422, "token", "newPassword")
			reset(token, next).Want(200).Shows(succeeded)
			mine.Call("GET", "/api/v1/tenants", nil).Refused(401)
			mine.Call("POST", nodetest.FlagPath("any", "/evaluate"), `{}`, "X-Tenant-ID", "any").Refused(401)
			there.Service.Eventually("the other node refuses the token", func() bool { return there.Call("GET", "/api/v1/tenants", nil).Status == 401 })
			for _, refresh := range []string{account.refresh, other.refresh} {
				s.Anonymous().Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": refresh}).Refused(401)
			}
			reset(token, next).Refused(422, "token")
			signIn(s, account.email, nodetest.Password).Refused(401)
			token = signIn(s, account.email, next).Want(200).Object()["token"].(string)
			withToken(me, token).Call("GET", "/api/v1/tenants", nil).Want(200)
			withToken(there, token).Call("GET", "/api/v1/tenants", nil).Want(200)
		},
		"a rebuilt snapshot knows which sessions have ended": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).Want(200)
			_, token := linkTo(t, server, account.email, 1)
			s.Anonymous().Call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": next}).Want(200)
			third := s.SecondNode()
			withToken(third.Anonymous(), account.token).Call("GET", "/api/v1/tenants", nil).Refused(401)
		},
		"the page of the link sets the password": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).Want(200)
			link, _ := linkTo(t, server, account.email, 1)
			if page := postForm(s, link, url.Values{"newPassword": {"short"}}, 422); !strings.Contains(page, "must be at least 8 characters") || !strings.Contains(page, "<form") {
				t.Errorf("a short password: %s", page)
			}
			if page := postForm(s, link, url.Values{"newPassword": {next}}, 200); !strings.Contains(page, "You can sign in now.") {
				t.Errorf("it is set: %s", page)
			}
			signIn(s, account.email, next).Want(200)
			if page := postForm(s, link, url.Values{"newPassword": {next}}, 422); !strings.Contains(page, "has been used or has expired") || strings.Contains(page, "<form") {
				t.Errorf("a used link: %s", page)
			}
			postForm(s, "/reset-password", url.Values{"newPassword": {next}}, 422)
			postForm(s, "/reset-password?token="+url.QueryEscape(`"><script>`), url.Values{"newPassword": {next}}, 422)
			s.Anonymous().Call("POST", "/reset-password?token=x", strings.Repeat("x", 1<<20), "Content-Type", "application/x-www-form-urlencoded").Refused(400)
		},
		"a forgotten password is answered alike for any address": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			known := s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).Want(200)
			for _, email := range []string{nodetest.Address(), "nobody", " ", strings.Repeat("x", 10_000)} {
				a := s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).Want(200)
				if string(a.Body) != string(known.Body) {
					t.Errorf("%s, and for a known address %s", a.Body, known.Body)
				}
			}
			s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", `{}`).Refused(422, "email")
		},
		"a changed password ends the other sessions": func(_ *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account := newAccount(me)
			other := account.signIn(me)
			mine := withToken(me, account.token)
			update := func(current, password string) *nodetest.Answer {
				return mine.Call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": current, "newPassword": password})
			}
			update("wrong horse", next).Refused(422, "currentPassword")
			update("", "short").Refused(422, "currentPassword", "newPassword")
			update(nodetest.Password, "short").Refused(422, "newPassword")
			mine.Call("POST", "/api/v1/auth/update-password", `{}`).Refused(422, "currentPassword", "newPassword")
			withToken(me, "").Call("POST", "/api/v1/auth/update-password", `{}`).Refused(401)
			withToken(me, other.token).Call("GET", "/api/v1/tenants", nil).Want(200)

			update(nodetest.Password, next).Want(200).Shows(succeeded)
			mine.Call("GET", "/api/v1/tenants", nil).Want(200)
			withToken(me, other.token).Call("GET", "/api/v1/tenants", nil).Refused(401)
			s.Anonymous().Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": other.refresh}).Refused(401)
			refreshed := s.Anonymous().Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": account.refresh}).Want(200).Object()
			withToken(me, refreshed["token"].(string)).Call("GET", "/api/v1/tenants", nil).Want(200)
			signIn(s, account.email, nodetest.Password).Refused(401)
			latest := signIn(s, account.email, next).Want(200).Object()["token"].(string)
			withToken(me, latest).Call("GET", "/api/v1/tenants", nil).Want(200)

			withToken(me, latest).Call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": next, "newPassword": nodetest.Password}).Want(200)
			mine.Call("GET", "/api/v1/tenants", nil).Refused(401)
			withToken(me, latest).Call("GET", "/api/v1/tenants", nil).Want(200)
		},
		"guesses of the current password are limited": func(_ *testing.T, _ *nodetest.Service, me *nodetest.Client) {
			mine := withToken(me, newAccount(me).token)
			for range 20 {
				mine.Call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": "wrong horse", "newPassword": next}).Refused(422, "currentPassword")
			}
			mine.Call("POST", "/api/v1/auth/update-password", map[string]string{"currentPassword": nodetest.Password, "newPassword": next}).Refused(429)
		},
		"in development addresses are taken as verified, and no mail asks": func(t *testing.T, s *nodetest.Service, me *nodetest.Client) {
			account, owner := newAccount(me), s.SignUp(nodetest.Address())
			if verified(t, account.token) {
				t.Error("the token says that somebody has proved the address")
			}
			owner.Call("POST", usersPath(owner), map[string]string{"email": account.email, "role": "viewer"}).Want(201)
			joined := withToken(me, account.signIn(me).token)
			nodetest.Same(t, "tenants, with the one that the address was added to", len(joined.Call("GET", "/api/v1/tenants", nil).Want(200).List()), 2)
			me.Call("POST", "/api/v1/auth/verify-email", `{"token":"nonsense","password":"x"}`).Refused(422, "token")
			for _, m := range server.Mails() {
				if strings.EqualFold(m.To, account.email) && strings.Contains(m.Text, "/verify-email") {
					t.Errorf("got %+v", m)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.In(t)
			test(t, s, s.Anonymous())
		})
	}
}

// verified returns whether an ID token has a verified address.
func verified(t *testing.T, token string) bool {
	t.Helper()
	var claims struct {
		EmailVerified *bool `json:"email_verified"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil || claims.EmailVerified == nil {
		t.Fatalf("the token does not tell: %v", err)
	}
	return *claims.EmailVerified
}

func TestAddressesAreVerifiedInProduction(t *testing.T) {
	t.Parallel()
	s, server := mailed(t, "production")
	owner := verifyAddress(s.SignUp(nodetest.Address()))
	account := newAccount(owner)
	mine := withToken(owner, account.token)
	if verified(t, account.token) {
		t.Error("an address is taken on trust")
	}
	link, token := linkTo(t, server, account.email, 1) // before the invitation, which is mailed to the same address
	owner.Call("POST", "/api/v1/tenants/"+owner.Tenant+"/users", map[string]string{"email": account.email, "role": "viewer"}).
		Want(201)
	tenants := func(token string) int {
		return len(
			checkBootstrap(t, mine.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": token}).Want(200), account.email)["tenants"].([]any),
		)
	}
	nodetest.Same(t, "tenants of a person with an address of who knows whom", tenants(account.token), 1)

	nodetest.Same(t, "the link", link, s.URL+"/verify-email?token="+token)
	s.Anonymous().
		Call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": nodetest.Password}).
		Refused(422, "token")
	for _, wrong := range []string{"", "wrong horse"} { // a person who has not signed up, but reads the mails
		if page := postForm(s, link, url.Values{"password": {wrong}}, 422); !strings.Contains(page, "The password is") ||
			!strings.Contains(page, "<form") {
			t.Errorf("a wrong password: %s", page)
		}
	}
	if verified(t, account.signIn(owner).token) {
		t.Error("somebody who does not know the password has verified the address")
	}
	if page := postForm(s, link, url.Values{"password": {nodetest.Password}}, 200); !strings.Contains(page, "confirmed") {
		t.Errorf("the address is confirmed: %s", page)
	}
	if page := postForm(s, link, url.Values{"password": {nodetest.Password}}, 422); !strings.Contains(page, "has been used or has expired") {
		t.Errorf("a used link: %s", page)
	}
	refreshed := account.signIn(owner).token
	if !verified(t, refreshed) {
		t.Error("the address is not verified")
	}
	nodetest.Same(t, "tenants of a person with a verified address", tenants(refreshed), 2)

	third := newAccount(owner)
	_, token = linkTo(t, server, third.email, 1)
	verify := func(password string) *nodetest.Answer {
		return s.Anonymous().
			Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": password})
	}
	verify("").Refused(422, "password")
	verify("wrong horse").Refused(422, "password")
	verify(nodetest.Password).Want(200).Shows(map[string]any{"success": true})
	verify(nodetest.Password).Refused(422, "token")
	s.Anonymous().Call("POST", "/api/v1/auth/verify-email", `{}`).Refused(422, "token", "password")
}

// Body, headers and work are the same for known and unknown addresses. Hashing takes nearly all the time of a sign-in;
// its memory use shows that it happens, on any machine.
func TestKnownAndUnknownAddressesAreAnsweredAlike(t *testing.T) { // alone, because its memory is measured
	const hash = 16 << 20
	s, _ := mailedHashing(t, "production", hash>>10)
	account := newAccount(s.Anonymous())
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	for name, c := range map[string]struct {
		hashes uint64
		call   func(email string) *nodetest.Answer
	}{
		"sign-in": {1, func(email string) *nodetest.Answer {
			return s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": email, "password": "wrong horse"}).Refused(401)
		}},
		"reset": {0, func(email string) *nodetest.Answer {
			return s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).Want(200)
		}},
	} {
		var answers [2]*nodetest.Answer
		for i, email := range []string{account.email, nodetest.Address()} {
			before := allocated()
			answers[i] = c.call(email)
			if hashes := (allocated() - before) / hash; hashes != c.hashes {
				t.Errorf("%s of a known address (%t) takes %d hashes, want %d", name, i == 0, hashes, c.hashes)
			}
		}
		if name == "sign-in" {
			sameProblem(t, answers[0], answers[1])
		} else if string(answers[0].Body) != string(answers[1].Body) {
			t.Errorf("%s and %s", answers[0].Body, answers[1].Body)
		}
		for header := range answers[0].Header {
			if len(answers[1].Header[header]) == 0 {
				t.Errorf("%s: only a known address is answered with %s", name, header)
			}
		}
	}
}

func TestMailsOfProductionWithoutAServer(t *testing.T) {
	t.Parallel()
	book := &nodetest.LogBook{}
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "production"}, book.Logger())
	if !strings.Contains(book.String(), "there is no FLAGLEDGER_SMTP_URL") {
		t.Error("the log does not say at the start that mails are not sent")
	}
	email := newAccount(s.Anonymous()).email
	s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).Want(200)
	s.Eventually("the log tells of both mails", func() bool {
		return strings.Contains(book.String(), "Confirm your e-mail address") &&
			strings.Contains(book.String(), "A new password")
	})
	if strings.Contains(book.String(), "token=") || strings.Contains(book.String(), email) {
		t.Errorf("the log shows a secret")
	}
}

func TestMailsOfDevelopmentStandInTheLog(t *testing.T) {
	t.Parallel()
	book := &nodetest.LogBook{}
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{Environment: "development"}, book.Logger())
	email := newAccount(s.Anonymous()).email
	s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": email}).Want(200)
	s.Eventually("the log shows the link",
		func() bool { return strings.Contains(book.String(), s.URL+"/reset-password?token=") })
}
