package identitytest

import (
	"strings"
	"testing"

	"flagledger/commands"
	"flagledger/commands/people"
)

func forgottenPassword(t *testing.T, s Subject) {
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
	refused(t, s.VerifyEmail(t.Context(), "nonsense", secret, anyone), commands.Invalid, "token")
	for _, bad := range []string{"", "nonsense"} {
		_, err := s.resetPassword(t.Context(), bad, another)
		refused(t, err, commands.Invalid, "token")
	}
	s.Later(t)
	unset := must(s.PrepareReset(t.Context(), token, another))(t) // and not applied
	between := must(s.SignIn(t.Context(), email, secret))(t)
	if unset.Ends.UserID != up.UserID || !unset.Ends.Before.After(up.AuthTime) {
		t.Errorf("a session that began at %v ends by %+v", up.AuthTime, unset.Ends)
	}
	if unset.FirstVerifies != s.KnowsFirst {
		t.Errorf("the new password verifies the address for the first time, but it reports %v",
			unset.FirstVerifies)
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
	for _, session := range []people.Session{up, between} {
		_, err = s.refresh(t.Context(), session.RefreshToken)
		refused(t, err, commands.Unauthenticated)
	}
	in := must(s.SignIn(t.Context(), email, another))(t)
	if in.AuthTime.Before(ended.Before) || !in.EmailVerified {
		t.Errorf("the next session is %+v, and sessions before %v have ended", in.Claims, ended.Before)
	}
}

func changedPassword(t *testing.T, s Subject) {
	email := address()
	up := must(s.SignUp(t.Context(), email, secret, ""))(t)
	s.Later(t)
	in := must(s.SignIn(t.Context(), email, secret))(t)
	_, err := s.updatePassword(t.Context(), in.Claims, another, another)
	refused(t, err, commands.Unauthenticated)
	_, err = s.updatePassword(t.Context(), in.Claims, "", "short")
	refused(t, err, commands.Invalid, "currentPassword", "newPassword")
	s.Later(t)
	must(s.PrepareUpdate(t.Context(), in.Claims, secret, another))(t) // and not applied
	ended := must(s.updatePassword(t.Context(), in.Claims, secret, another))(t)
	if ended.UserID != up.UserID || !ended.Before.After(in.AuthTime) || ended.Except != in.SessionID {
		t.Errorf("a session that began at %v goes on after %+v", in.AuthTime, ended)
	}
	_, err = s.SignIn(t.Context(), email, secret)
	refused(t, err, commands.Unauthenticated)
	if after := must(s.SignIn(t.Context(), email, another))(t); after.AuthTime.Before(ended.Before) {
		t.Errorf("the next session began at %v, and sessions before %v have ended", after.AuthTime, ended.Before)
	}
	_, err = s.updatePassword(t.Context(), people.Claims{UserID: "nobody", Email: address()}, secret, another)
	refused(t, err, commands.Unauthenticated)
}

func verifiedAddress(t *testing.T, s Subject) {
	email := address()
	must(s.SignUp(t.Context(), email, secret, ""))(t)
	token := s.Token(t, email, true, "")
	_, err := s.PrepareReset(t.Context(), token, another)
	refused(t, err, commands.Invalid, "token")
	for _, wrong := range []string{"", another, strings.Repeat("x", commands.MaxPassword+1)} {
		refused(t, s.VerifyEmail(t.Context(), token, wrong, anyone), commands.Invalid, "password")
	}
	if must(s.SignIn(t.Context(), email, secret))(t).EmailVerified {
		t.Error("a person without the password has verified the address")
	}
	if err := s.VerifyEmail(t.Context(), token, secret, anyone); err != nil {
		t.Fatal(err)
	}
	for _, used := range []string{token, "", "nonsense"} {
		refused(t, s.VerifyEmail(t.Context(), used, secret, anyone), commands.Invalid, "token")
	}
	in := must(s.SignIn(t.Context(), email, secret))(t)
	if !in.EmailVerified || !must(s.Verify(t.Context(), in.IDToken))(t).EmailVerified {
		t.Error("it is not verified")
	}
	if err := s.ForgotPassword(t.Context(), email); err != nil {
		t.Fatal(err)
	}
	if must(s.PrepareReset(t.Context(), s.Token(t, email, false, ""), another))(t).FirstVerifies {
		t.Error("the address was verified already, but a new password reports its first verification")
	}
}

// anyone lets any person verify their address.
func anyone(string) error { return nil }
