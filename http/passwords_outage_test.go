package http_test

import (
	"regexp"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
	"flagledger/events/eventstore/esdbtest"
	"flagledger/migrations/pgtest"
)

// If sessions cannot be ended, the password stays unchanged, so that the request can be repeated.
func TestPasswordsStayDuringAnOutageOfTheEventStore(t *testing.T) {
	t.Parallel()
	mails, store := mailtest.New(t, mailtest.Options{}), esdbtest.New(t)
	c := settings.Config{
		EventStoreURL: store.URL(),
		Environment:   "development",
		Mail:          settings.Mail{URL: "smtp://" + mails.Addr + "?from=flags@example.com"},
	}
	s := nodetest.Start(t, pgtest.Migrated(t), c, nodetest.Log(t))
	account := newAccount(s.Anonymous())
	mine, stolen := withToken(s.Anonymous(), account.token), withToken(s.Anonymous(), account.signIn(s.Anonymous()).token)
	const second, third = "second horse", "third horse"
	update := func() *nodetest.Answer {
		return mine.Call("POST", "/api/v1/auth/update-password",
			map[string]string{"currentPassword": nodetest.Password, "newPassword": second}, "Idempotency-Key", "once")
	}
	store.Stop()
	update().Refused(503)
	store.Start()
	s.Eventually("the same request is answered", func() bool { return update().Status == 200 })
	s.Eventually("a stolen token is refused",
		func() bool { return stolen.Call("GET", "/api/v1/tenants", nil).Status == 401 })
	mine.Call("GET", "/api/v1/tenants", nil).Want(200)

	s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": account.email}).Want(200)
	_, token := linkTo(t, mails, account.email, 1)
	reset := func() *nodetest.Answer {
		return s.Anonymous().
			Call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": third})
	}
	signIn := func(password string) *nodetest.Answer {
		return s.Anonymous().Call("POST", "/auth/signin", map[string]string{"email": account.email, "password": password})
	}
	store.Stop()
	reset().Refused(503)
	signIn(second).Want(200)
	store.Start()
	s.Eventually("the link is good", func() bool { return reset().Status == 200 })
	s.Eventually("the session has ended", func() bool { return mine.Call("GET", "/api/v1/tenants", nil).Status == 401 })
	signIn(second).Refused(401)
	signIn(third).Want(200)
}

// A refresh during an outage does not use up the token. A refresh with a stolen token ends the session as soon as
// possible.
func TestRefreshesDuringAnOutageOfTheEventStore(t *testing.T) {
	t.Parallel()
	book, store := &nodetest.LogBook{}, esdbtest.New(t)
	s := nodetest.Start(t, pgtest.Migrated(t), settings.Config{EventStoreURL: store.URL(), Environment: "development"},
		book.Logger())
	nobody := s.Anonymous()
	account := newAccount(nobody)
	refresh := func(token string) *nodetest.Answer {
		return s.Anonymous().Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": token})
	}
	// The event store is asked about a person without a tenant.
	first := withToken(nobody, account.token).Call("GET", "/api/v1/tenants", nil).Want(200).List()[0]["id"].(string)
	withToken(nobody, account.token).Call("DELETE", "/api/v1/tenants/"+first, nil).Want(204)
	store.Stop()
	refresh(account.refresh).Refused(503)
	store.Start()
	var next map[string]any
	s.Eventually("the same token is traded", func() bool {
		a := refresh(account.refresh)
		if a.Status == 200 {
			next = a.Object()
		}
		return a.Status == 200
	})
	store.Stop()
	refresh(account.refresh).Refused(503) // again
	store.Start()
	var a *nodetest.Answer
	s.Eventually("the session has ended", func() bool { a = refresh(account.refresh); return a.Status == 401 })
	s.Eventually("its ID token is refused", func() bool {
		return withToken(nobody, next["token"].(string)).Call("GET", "/api/v1/tenants", nil).Status == 401
	})
	refresh(next["refreshToken"].(string)).Refused(401)
	id := strings.TrimPrefix(a.Object()["instance"].(string), "urn:uuid:")
	if !regexp.MustCompile(`used twice.*"request":"` + id + `"`).MatchString(book.String()) {
		t.Errorf("the log does not tell that it was the request %s", id)
	}
}
