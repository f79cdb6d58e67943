// Package identitytest is what every identity provider does, as tests.
package identitytest

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/commands"
)

// Subject is a provider that is tested, with nobody in it whom the suite knows. It does not take addresses on trust.
type Subject struct {
	commands.Identity
	// Token gives that of the link which was mailed to an address last, to set a new password or to verify it, once it is another than last.
	Token func(t testing.TB, email string, verify bool, last string) string
	// Later passes until the next second: sessions tell their beginning in whole ones.
	Later func(t testing.TB)
}

// refresh is for sessions that nothing speaks against.
func (s Subject) refresh(ctx context.Context, token string) (commands.Session, error) {
	return s.Refresh(ctx, token, func(commands.Claims) error { return nil })
}

// resetPassword sets a password and tells which sessions have ended.
func (s Subject) resetPassword(ctx context.Context, token, password string) (commands.EndSessions, error) {
	return set(ctx)(s.PrepareReset(ctx, token, password))
}

func (s Subject) updatePassword(ctx context.Context, c commands.Claims, current, password string) (commands.EndSessions, error) {
	return set(ctx)(s.PrepareUpdate(ctx, c, current, password))
}

func set(ctx context.Context) func(commands.PasswordChange, error) (commands.EndSessions, error) {
	return func(change commands.PasswordChange, err error) (commands.EndSessions, error) {
		if err != nil {
			return commands.EndSessions{}, err
		}
		return change.Ends, change.Set(ctx)
	}
}

var errBroken = &commands.Error{Kind: commands.Unavailable, Detail: "nobody can be told"}

const (
	secret  = "correct horse battery"
	another = "another horse battery"
)

func address() string { return strings.ToLower(rand.Text()) + "@example.com" }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refused checks the kind of an error and which fields it names.
func refused(t testing.TB, err error, kind commands.Kind, fields ...string) string {
	t.Helper()
	e, ok := errors.AsType[*commands.Error](err)
	if !ok || e.Kind != kind || e.Detail == "" {
		t.Errorf("got error %v, want kind %d", err, kind)
		return ""
	}
	if got := slices.Sorted(maps.Keys(e.Fields)); !slices.Equal(got, slices.Sorted(slices.Values(fields))) {
		t.Errorf("fields %v are at fault, want %v", e.Fields, fields)
	}
	return e.Detail
}

// Run tests a provider.
func Run(t *testing.T, s Subject) {
	for name, test := range map[string]func(*testing.T){
		"sign-up signs in": func(t *testing.T) {
			email := address()
			up := must(s.SignUp(t.Context(), " "+email+" ", secret, "Ada Løvelace"))(t)
			c := up.Claims
			if c.UserID == "" || c.Email != email || c.EmailVerified || c.DisplayName != "Ada Løvelace" || c.Provider != "password" || c.SessionID == "" {
				t.Errorf("got %+v", c)
			}
			if !c.AuthTime.Equal(c.AuthTime.Truncate(time.Second)) || (c.ExpiresAt.Sub(c.AuthTime)-time.Hour).Abs() > 2*time.Second || up.ExpiresIn != time.Hour {
				t.Errorf("began %v, expires %v, in %v", c.AuthTime, c.ExpiresAt, up.ExpiresIn)
			}
			for what, verify := range map[string]func() (commands.Claims, error){
				"verified": func() (commands.Claims, error) { return s.Verify(t.Context(), up.IDToken) },
				"admitted": func() (commands.Claims, error) { return s.Admit(t.Context(), up.IDToken) },
			} {
				if diff := cmp.Diff(c, must(verify())(t)); diff != "" {
					t.Errorf("%s: %s", what, diff)
				}
			}
		},
		"what is wrong with a sign-up is told at once": func(t *testing.T) {
			_, err := s.SignUp(t.Context(), "nobody", "short", strings.Repeat("x", 201))
			refused(t, err, commands.Invalid, "email", "password", "displayName")
			_, err = s.SignUp(t.Context(), address(), "1234567", "")
			refused(t, err, commands.Invalid, "password")
		},
		"an address makes one person, also when two sign up at once": func(t *testing.T) {
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
		},
		"sign-in takes the address in any case": func(t *testing.T) {
			email := address()
			up := must(s.SignUp(t.Context(), email, secret, ""))(t)
			s.Later(t)
			in := must(s.SignIn(t.Context(), " "+strings.ToUpper(email), secret))(t)
			if in.UserID != up.UserID || in.Email != email || in.SessionID == up.SessionID || !in.AuthTime.After(up.AuthTime) {
				t.Errorf("signed up as %+v, in as %+v", up.Claims, in.Claims)
			}
		},
		"a wrong password and an unknown address are refused alike": func(t *testing.T) {
			email := address()
			must(s.SignUp(t.Context(), email, secret, ""))(t)
			details := map[string]bool{}
			for _, credentials := range [][2]string{{email, another}, {email, ""}, {address(), secret}, {"nobody", secret}, {"", ""}, {email, strings.Repeat("x", 5000)}} {
				_, err := s.SignIn(t.Context(), credentials[0], credentials[1])
				details[refused(t, err, commands.Unauthenticated)] = true
			}
			if len(details) != 1 {
				t.Errorf("they are told apart: %v", details)
			}
		},
		"refreshing goes on with the session": func(t *testing.T) {
			up := must(s.SignUp(t.Context(), address(), secret, "Ada"))(t)
			_, err := s.Refresh(t.Context(), up.RefreshToken, func(c commands.Claims) error {
				if c.UserID != up.UserID || c.SessionID != up.SessionID || !c.AuthTime.Equal(up.AuthTime) || c.Email != up.Email {
					t.Errorf("the session of %+v is said to be %+v", up.Claims, c)
				}
				return errBroken
			})
			refused(t, err, commands.Unavailable)
			next := must(s.refresh(t.Context(), up.RefreshToken))(t)
			if next.RefreshToken == "" || next.ExpiresIn != time.Hour {
				t.Errorf("got %+v", next)
			}
			up.ExpiresAt, next.ExpiresAt = time.Time{}, time.Time{}
			if diff := cmp.Diff(up.Claims, next.Claims); diff != "" {
				t.Error(diff)
			}
			must(s.Verify(t.Context(), next.IDToken))(t)
			for _, token := range []string{"", "nonsense", up.IDToken} {
				_, err := s.refresh(t.Context(), token)
				refused(t, err, commands.Unauthenticated)
			}
		},
		"a session that was revoked is not refreshed": func(t *testing.T) {
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
				t.Errorf("revoked for nobody: %v", err)
			}
		},
		"tokens that do not hold are refused": func(t *testing.T) {
			up := must(s.SignUp(t.Context(), address(), secret, ""))(t)
			part := strings.Split(up.IDToken, ".")
			for _, token := range []string{"", "nonsense", "..", part[0] + "." + part[1], up.IDToken + "." + part[0], "e30.e30.", up.RefreshToken, strings.Repeat("x", 20_000)} {
				_, err := s.Verify(t.Context(), token)
				refused(t, err, commands.Unauthenticated)
				_, err = s.Admit(t.Context(), token)
				refused(t, err, commands.Unauthenticated)
			}
		},
		"a forgotten password is reset by a mailed link, once, and ends the sessions": func(t *testing.T) {
			email := address()
			up := must(s.SignUp(t.Context(), email, secret, ""))(t)
			for _, to := range []string{address(), "nobody", "", strings.ToUpper(email)} {
				if err := s.ForgotPassword(t.Context(), to); err != nil {
					t.Errorf("%q: %v", to, err)
				}
			}
			token := s.Token(t, email, false, "")
			_, err := s.resetPassword(t.Context(), token, "short")
			refused(t, err, commands.Invalid, "newPassword")
			refused(t, s.VerifyEmail(t.Context(), "nonsense", secret), commands.Invalid, "token")
			for _, bad := range []string{"", "nonsense"} {
				_, err := s.resetPassword(t.Context(), bad, another)
				refused(t, err, commands.Invalid, "token")
			}
			s.Later(t)
			unset := must(s.PrepareReset(t.Context(), token, another))(t) // and left
			between := must(s.SignIn(t.Context(), email, secret))(t)
			if unset.Ends.UserID != up.UserID || !unset.Ends.Before.After(up.AuthTime) {
				t.Errorf("a session that began at %v ends by %+v", up.AuthTime, unset.Ends)
			}
			s.Later(t)
			ended := must(s.resetPassword(t.Context(), token, another))(t)
			if ended.UserID != up.UserID || !ended.Before.After(up.AuthTime) || ended.Except != "" {
				t.Errorf("a session that began at %v ends by %+v", up.AuthTime, ended)
			}
			_, err = s.resetPassword(t.Context(), token, secret)
			refused(t, err, commands.Invalid, "token")
			_, err = s.SignIn(t.Context(), email, secret)
			refused(t, err, commands.Unauthenticated)
			for _, session := range []commands.Session{up, between} {
				_, err = s.refresh(t.Context(), session.RefreshToken)
				refused(t, err, commands.Unauthenticated)
			}
			in := must(s.SignIn(t.Context(), email, another))(t)
			if in.AuthTime.Before(ended.Before) || !in.EmailVerified {
				t.Errorf("the session that follows is %+v, and those before %v have ended", in.Claims, ended.Before)
			}
		},
		"whoever knows the password changes it": func(t *testing.T) {
			email := address()
			up := must(s.SignUp(t.Context(), email, secret, ""))(t)
			s.Later(t)
			in := must(s.SignIn(t.Context(), email, secret))(t)
			_, err := s.updatePassword(t.Context(), in.Claims, another, another)
			refused(t, err, commands.Unauthenticated)
			_, err = s.updatePassword(t.Context(), in.Claims, "", "short")
			refused(t, err, commands.Invalid, "currentPassword", "newPassword")
			s.Later(t)
			must(s.PrepareUpdate(t.Context(), in.Claims, secret, another))(t) // and left
			ended := must(s.updatePassword(t.Context(), in.Claims, secret, another))(t)
			if ended.UserID != up.UserID || !ended.Before.After(in.AuthTime) || ended.Except != in.SessionID {
				t.Errorf("a session that began at %v goes on after %+v", in.AuthTime, ended)
			}
			_, err = s.SignIn(t.Context(), email, secret)
			refused(t, err, commands.Unauthenticated)
			if after := must(s.SignIn(t.Context(), email, another))(t); after.AuthTime.Before(ended.Before) {
				t.Errorf("the session that follows began at %v, and those before %v have ended", after.AuthTime, ended.Before)
			}
			_, err = s.updatePassword(t.Context(), commands.Claims{UserID: "nobody", Email: address()}, secret, another)
			refused(t, err, commands.Unauthenticated)
		},
		"an address is verified by a mailed link, once": func(t *testing.T) {
			email := address()
			must(s.SignUp(t.Context(), email, secret, ""))(t)
			token := s.Token(t, email, true, "")
			_, err := s.resetPassword(t.Context(), token, another)
			refused(t, err, commands.Invalid, "token")
			for _, wrong := range []string{"", another, strings.Repeat("x", commands.MaxPassword+1)} {
				refused(t, s.VerifyEmail(t.Context(), token, wrong), commands.Invalid, "password")
			}
			if must(s.SignIn(t.Context(), email, secret))(t).EmailVerified {
				t.Error("somebody who does not know the password has verified it")
			}
			if err := s.VerifyEmail(t.Context(), token, secret); err != nil {
				t.Fatal(err)
			}
			for _, used := range []string{token, "", "nonsense"} {
				refused(t, s.VerifyEmail(t.Context(), used, secret), commands.Invalid, "token")
			}
			in := must(s.SignIn(t.Context(), email, secret))(t)
			if !in.EmailVerified || !must(s.Verify(t.Context(), in.IDToken))(t).EmailVerified {
				t.Error("it is not verified")
			}
		},
	} {
		t.Run(name, test)
	}
}
