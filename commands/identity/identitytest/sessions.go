package identitytest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/commands"
	"flagledger/commands/people"
)

func signUpSignsIn(t *testing.T, s Subject) {
	email := address()
	up := must(s.SignUp(t.Context(), " "+email+" ", secret, "Ada Løvelace"))(t)
	c := up.Claims
	if c.UserID == "" || c.Email != email || c.EmailVerified || c.DisplayName != "Ada Løvelace" ||
		c.Provider != "password" ||
		c.SessionID == "" {
		t.Errorf("got %+v", c)
	}
	if !c.AuthTime.Equal(c.AuthTime.Truncate(time.Second)) ||
		(c.ExpiresAt.Sub(c.AuthTime)-time.Hour).Abs() > 2*time.Second ||
		up.ExpiresIn != time.Hour {
		t.Errorf("began %v, expires %v, in %v", c.AuthTime, c.ExpiresAt, up.ExpiresIn)
	}
	for what, verify := range map[string]func() (people.Claims, error){
		"verified": func() (people.Claims, error) { return s.Verify(t.Context(), up.IDToken) },
		"admitted": func() (people.Claims, error) { return s.Admit(t.Context(), up.IDToken) },
	} {
		if diff := cmp.Diff(c, must(verify())(t)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

func wrongSignUp(t *testing.T, s Subject) {
	_, err := s.SignUp(t.Context(), "nobody", "short", strings.Repeat("x", 201))
	refused(t, err, commands.Invalid, "email", "password", "displayName")
	_, err = s.SignUp(t.Context(), address(), "1234567", "")
	refused(t, err, commands.Invalid, "password")
}

func verifiedSignUp(t *testing.T, s Subject) {
	email := address()
	up := must(s.SignUpVerified(t.Context(), " "+email+" ", secret, "Ada Løvelace"))(t)
	if up.UserID == "" || up.Email != email || !up.EmailVerified || up.DisplayName != "Ada Løvelace" ||
		up.Provider != "password" ||
		up.ExpiresIn != time.Hour {
		t.Errorf("got %+v", up)
	}
	if got := must(s.Admit(t.Context(), up.IDToken))(t); got.UserID != up.UserID || got.SessionID != up.SessionID {
		t.Errorf("the token belongs to %+v, want %+v", got, up.Claims)
	}
	for what, session := range map[string]people.Session{
		"refreshed": must(s.refresh(t.Context(), up.RefreshToken))(t),
		"signed in": must(s.SignIn(t.Context(), email, secret))(t),
	} {
		if session.UserID != up.UserID || !session.EmailVerified ||
			!must(s.Verify(t.Context(), session.IDToken))(t).EmailVerified {
			t.Errorf("%s: got %+v", what, session.Claims)
		}
	}
	_, err := s.SignUpVerified(t.Context(), strings.ToUpper(email), another, "")
	refused(t, err, commands.Conflict)
	_, err = s.SignUpVerified(t.Context(), "nobody", "short", strings.Repeat("x", 201))
	refused(t, err, commands.Invalid, "email", "password", "displayName")
}

func markedVerified(t *testing.T, s Subject) {
	email := address()
	up := must(s.SignUp(t.Context(), email, secret, ""))(t)
	if up.EmailVerified {
		t.Error("an address is trusted without verification")
	}
	for range 2 {
		if err := s.MarkVerified(t.Context(), up.UserID); err != nil {
			t.Fatal(err)
		}
	}
	if in := must(s.SignIn(t.Context(), email, secret))(t); !in.EmailVerified ||
		!must(s.Verify(t.Context(), in.IDToken))(t).EmailVerified {
		t.Errorf("got %+v", in.Claims)
	}
}

func oneAddressIsOnePerson(t *testing.T, s Subject) {
	email := address()
	errs := make([]error, 4)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			_, errs[i] = s.SignUp(t.Context(), []string{email, strings.ToUpper(email)}[i%2], secret, "")
		})
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else {
			refused(t, err, commands.Conflict)
		}
	}
	if made != 1 {
		t.Errorf("%d people", made)
	}
	_, err := s.SignUp(t.Context(), email, another, "")
	refused(t, err, commands.Conflict)
	must(s.SignIn(t.Context(), email, secret))(t)
}

func signInInAnyCase(t *testing.T, s Subject) {
	email := address()
	up := must(s.SignUp(t.Context(), email, secret, ""))(t)
	s.Later(t)
	in := must(s.SignIn(t.Context(), " "+strings.ToUpper(email), secret))(t)
	if in.UserID != up.UserID || in.Email != email || in.SessionID == up.SessionID || !in.AuthTime.After(up.AuthTime) {
		t.Errorf("signed up as %+v, in as %+v", up.Claims, in.Claims)
	}
}

func refusedAlike(t *testing.T, s Subject) {
	email := address()
	must(s.SignUp(t.Context(), email, secret, ""))(t)
	details := map[string]bool{}
	for _, credentials := range [][2]string{{email, another}, {email, ""}, {address(), secret}, {"nobody", secret},
		{"", ""}, {email, strings.Repeat("x", 5000)}} {
		_, err := s.SignIn(t.Context(), credentials[0], credentials[1])
		details[refused(t, err, commands.Unauthenticated)] = true
	}
	if len(details) != 1 {
		t.Errorf("the errors differ: %v", details)
	}
}

func refreshGoesOn(t *testing.T, s Subject) {
	email := address()
	must(s.SignUp(t.Context(), email, secret, "Ada"))(t)
	// Firebase's emulator dates every session of an account to its last sign-in, and the link of a sign-up is mailed by a
	// different one.
	in := must(s.SignIn(t.Context(), email, secret))(t)
	_, err := s.Refresh(t.Context(), in.RefreshToken, func(c people.Claims) error {
		if c.UserID != in.UserID || c.SessionID != in.SessionID || !c.AuthTime.Equal(in.AuthTime) || c.Email != in.Email {
			t.Errorf("the session of %+v has the claims %+v", in.Claims, c)
		}
		return errBroken
	})
	refused(t, err, commands.Unavailable)
	next := must(s.refresh(t.Context(), in.RefreshToken))(t)
	if next.RefreshToken == "" || next.ExpiresIn != time.Hour {
		t.Errorf("got %+v", next)
	}
	in.ExpiresAt, next.ExpiresAt = time.Time{}, time.Time{}
	if diff := cmp.Diff(in.Claims, next.Claims); diff != "" {
		t.Error(diff)
	}
	must(s.Verify(t.Context(), next.IDToken))(t)
	for _, token := range []string{"", "nonsense", in.IDToken} {
		_, err := s.refresh(t.Context(), token)
		refused(t, err, commands.Unauthenticated)
	}
}

func revokedIsNotRefreshed(t *testing.T, s Subject) {
	up := must(s.SignUp(t.Context(), address(), secret, ""))(t)
	s.Later(t)
	if err := s.Revoke(t.Context(), up.UserID, up.SessionID); err != nil {
		t.Fatal(err)
	}
	_, err := s.refresh(t.Context(), up.RefreshToken)
	refused(t, err, commands.Unauthenticated)
	if err := s.Revoke(t.Context(), up.UserID, up.SessionID); err != nil {
		t.Errorf("revoked again: %v", err)
	}
	if err := s.Revoke(t.Context(), "nobody", "none"); err != nil {
		t.Errorf("revoked for an unknown person: %v", err)
	}
}

func endedIsNotRefreshed(t *testing.T, s Subject) {
	email := address()
	up := must(s.SignUp(t.Context(), email, secret, ""))(t)
	s.Later(t)
	ends := must(s.EndSessions(t.Context(), up.UserID, up.AuthTime))(t)
	if ends.UserID != up.UserID || !up.AuthTime.Before(ends.Before) || ends.Except != "" {
		t.Errorf("a session that began at %v ends by %+v", up.AuthTime, ends)
	}
	_, err := s.refresh(t.Context(), up.RefreshToken)
	refused(t, err, commands.Unauthenticated)
	if again := must(s.EndSessions(t.Context(), up.UserID, up.AuthTime))(t); again != ends {
		t.Errorf("repeated, it ends %+v, and before %+v", again, ends)
	}
	s.Later(t)
	if in := must(s.SignIn(t.Context(), email, secret))(t); in.AuthTime.Before(ends.Before) {
		t.Errorf("a session that began at %v is among those before %v", in.AuthTime, ends.Before)
	}
	must(s.EndSessions(t.Context(), "nobody", up.AuthTime))(t)
}

func badTokensAreRefused(t *testing.T, s Subject) {
	up := must(s.SignUp(t.Context(), address(), secret, ""))(t)
	part := strings.Split(up.IDToken, ".")
	for _, token := range []string{"", "nonsense", "..", part[0] + "." + part[1], up.IDToken + "." + part[0], "e30.e30.",
		up.RefreshToken, strings.Repeat("x", 20_000)} {
		_, err := s.Verify(t.Context(), token)
		refused(t, err, commands.Unauthenticated)
		_, err = s.Admit(t.Context(), token)
		refused(t, err, commands.Unauthenticated)
	}
}
