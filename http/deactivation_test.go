package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/mail/mailtest"
	"flagledger/events"
)

func TestDeactivationEndsSessionsAndLinks(t *testing.T) {
	t.Parallel()
	server := mailtest.New(t, mailtest.Options{})
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "production", SuperUsers: []string{"root@example.com"},
		Mail: settings.Mail{URL: "smtp://" + server.Addr + "?from=flags@example.com"},
	}, nodetest.Log(t))
	verified := func(a account, n int) account {
		_, token := linkTo(t, server, a.email, n)
		s.Anonymous().
			Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": token, "password": nodetest.Password}).
			Want(200)
		return a
	}
	root := verified(signUpAs(s, "root@example.com"), 1)
	super := s.Anonymous().WithToken(root.signIn(s.Anonymous()).token)
	person := verified(signUpAs(s, nodetest.Address()), 1)
	unverified := signUpAs(s, nodetest.Address())
	_, verification := linkTo(t, server, unverified.email, 1)
	s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": person.email}).Want(200)
	_, reset := linkTo(t, server, person.email, 2)

	setPassword := func(token string) *nodetest.Answer {
		return s.Anonymous().
			Call("POST", "/api/v1/auth/reset-password", map[string]string{"token": token, "newPassword": "another horse"})
	}
	verify := func() *nodetest.Answer {
		return s.Anonymous().
			Call("POST", "/api/v1/auth/verify-email", map[string]string{"token": verification, "password": nodetest.Password})
	}
	for _, a := range []account{person, unverified} {
		super.Call("PATCH", usersOfPlatform+"/"+a.user+"/deactivate", nil).Want(200)
		super.Call("PATCH", usersOfPlatform+"/"+a.user+"/deactivate", nil).Want(200)
		s.Anonymous().WithToken(a.token).Call("GET", "/api/v1/tenants", nil).Refused(403)
	}
	setPassword(reset).Refused(422, "token")
	verify().Refused(422, "token")
	sql(s, `delete from keep.reset_requests`) // a further link is mailed within the minute
	s.Anonymous().Call("POST", "/api/v1/auth/forgot-password", map[string]string{"email": person.email}).Want(200)
	_, meanwhile := linkTo(t, server, person.email, 3)
	setPassword(meanwhile).Refused(403)
	for _, a := range []account{person, unverified} {
		super.Call("PATCH", usersOfPlatform+"/"+a.user+"/reactivate", nil).Want(200)
		s.Anonymous().WithToken(a.token).Call("GET", "/api/v1/tenants", nil).Refused(401)
		s.Anonymous().Call("POST", "/api/v1/auth/refresh", map[string]string{"refreshToken": a.refresh}).Refused(401)
		s.Anonymous().WithToken(a.signIn(s.Anonymous()).token).Call("GET", "/api/v1/tenants", nil).Want(200)
	}
	setPassword(reset).Refused(422, "token")
	verify().Refused(422, "token")

	var names []string
	for r, err := range s.Store().Read(t.Context(), events.UserStream(person.user), 0) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, r.Name)
	}
	nodetest.Same(t, "facts", names,
		[]string{"user.registered", "user.deactivated", "user.sessions_ended", "user.sessions_ended", "user.reactivated"})
}
