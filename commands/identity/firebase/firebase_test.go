package firebase

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"flagledger/commands"
	"flagledger/commands/identity/firebase/emulator"
	"flagledger/commands/identity/identitytest"
	"flagledger/commands/notify"
	"flagledger/commands/people"
)

// running is a provider on the emulator that stops with the test. It records ended sessions: all of an erased person.
func running(t *testing.T, e *emulator.Emulator) (*Provider, chan commands.EndSessions) {
	t.Helper()
	return runningAt(t, e, time.Now)
}

func runningAt(t *testing.T, e *emulator.Emulator, now func() time.Time) (*Provider, chan commands.EndSessions) {
	t.Helper()
	ended := make(chan commands.EndSessions, 100)
	p, err := New(t.Context(), Options{
		ProjectID: emulator.Project, APIKey: "any", Emulator: e.Host, CheckEvery: 250 * time.Millisecond, Now: now,
		End: func(_ context.Context, c commands.EndSessions) error {
			ended <- c
			return nil
		},
		Gone: func(_ context.Context, userID string) error {
			ended <- commands.EndSessions{UserID: userID, Except: "gone"}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.o.Links = atOnce{p}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return p, ended
}

// atOnce mails links without a job.
type atOnce struct{ *Provider }

func (l atOnce) QueueVerification(ctx context.Context, userID, _ string) error {
	return l.MailVerificationLink(ctx, userID, 1)
}

func (l atOnce) QueueReset(ctx context.Context, email string, _ time.Time) error {
	return l.MailResetLink(ctx, email, 1)
}

// nextSecond waits for the next second.
func nextSecond(testing.TB) {
	for now := time.Now().Unix(); time.Now().Unix() == now; {
		time.Sleep(10 * time.Millisecond)
	}
}

func TestConformance(t *testing.T) {
	e := emulator.Start(t)
	for name, protected := range map[string]bool{"addresses can be found out": false, "addresses are protected": true} {
		t.Run(name, func(t *testing.T) {
			e.Protect(t, protected)
			p, _ := running(t, e)
			identitytest.Run(t, identitytest.Subject{
				Identity: p,
				Token: func(t testing.TB, email string, verify bool, last string) string {
					kind := map[bool]string{true: "VERIFY_EMAIL", false: "PASSWORD_RESET"}[verify]
					return e.Code(t, email, kind, last)
				},
				Later: nextSecond,
			})
		})
	}
}

func anyone(people.Claims) error { return nil }

func kindOf(t *testing.T, err error, kind commands.Kind) {
	t.Helper()
	if err == nil || commands.KindOf(err) != kind {
		t.Errorf("got error %v, want kind %d", err, kind)
	}
}

func TestWhatEndsAtFirebaseEndsHere(t *testing.T) {
	e := emulator.Start(t)
	p, ended := running(t, e)
	for name, end := range map[string]func(userID string){
		"revoked by an operator": func(id string) {
			e.Update(t, id, map[string]any{"validSince": strconv.FormatInt(time.Now().Unix(), 10)})
		},
		"disabled": func(id string) { e.Update(t, id, map[string]any{"disableUser": true}) },
		"deleted": func(id string) {
			e.Call(t, "POST", "/identitytoolkit.googleapis.com/v1/projects/"+emulator.Project+"/accounts:delete", map[string]string{"localId": id}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			email := strings.ToLower(rand.Text()) + "@example.com"
			up, err := p.SignUp(t.Context(), email, "correct horse", "")
			if err != nil {
				t.Fatal(err)
			}
			nextSecond(t)
			end(up.UserID)
			_, err = p.Admit(t.Context(), up.IDToken)
			kindOf(t, err, commands.Unauthenticated)
			_, err = p.Refresh(t.Context(), up.RefreshToken, anyone)
			kindOf(t, err, commands.Unauthenticated)
			if name != "revoked by an operator" {
				_, err = p.SignIn(t.Context(), email, "correct horse")
				if kindOf(t, err, commands.Unauthenticated); err.Error() != wrongCredentials().Error() {
					t.Errorf("a sign-in is told apart: %v", err)
				}
			}
			for deadline := time.After(time.Minute); ; {
				select {
				case ending := <-ended:
					if ending.UserID == up.UserID {
						if gone := ending.Except == "gone"; gone != (name == "deleted") || !gone && !up.AuthTime.Before(ending.Before) {
							t.Errorf("a session that began at %v ended with %+v", up.AuthTime, ending)
						}
						return
					}
				case <-deadline:
					t.Fatal("nobody is told")
				}
			}
		})
	}
}

func TestAnAccountIsDeleted(t *testing.T) {
	e := emulator.Start(t)
	p, _ := running(t, e)
	email := strings.ToLower(rand.Text()) + "@example.com"
	up, err := p.SignUp(t.Context(), email, "correct horse", "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Delete(t.Context(), up.UserID); err != nil {
			t.Fatal(err)
		}
		_, err = p.SignIn(t.Context(), email, "correct horse")
		kindOf(t, err, commands.Unauthenticated)
	}
}

func TestSessionsOfADisabledAccountEndOnce(t *testing.T) {
	e := emulator.Start(t)
	p, ended := running(t, e)
	up, err := p.SignUp(t.Context(), strings.ToLower(rand.Text())+"@example.com", "correct horse", "")
	if err != nil {
		t.Fatal(err)
	}
	nextSecond(t)
	e.Update(t, up.UserID, map[string]any{"disableUser": true})
	endings := func() (n int) {
		for len(ended) > 0 {
			if ending := <-ended; ending.UserID == up.UserID {
				n++
			}
		}
		return n
	}
	told := 0
	for range 3 {
		nextSecond(t)
		if err := p.check(t.Context()); err != nil {
			t.Fatal(err)
		}
		told += endings()
	}
	if told != 1 {
		t.Errorf("it is told %d times that they have ended", told)
	}
}

// The refusal comes before any session ends.
func TestADisabledAccountGetsNoNewPassword(t *testing.T) {
	e := emulator.Start(t)
	p, _ := running(t, e)
	email := strings.ToLower(rand.Text()) + "@example.com"
	up, err := p.SignUp(t.Context(), email, "correct horse", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ForgotPassword(t.Context(), email); err != nil {
		t.Fatal(err)
	}
	code := e.Code(t, email, "PASSWORD_RESET", "")
	e.Update(t, up.UserID, map[string]any{"disableUser": true})
	_, err = p.PrepareReset(t.Context(), code, "another horse")
	kindOf(t, err, commands.Unauthenticated)
	e.Update(t, up.UserID, map[string]any{"disableUser": false})
	if _, err := p.PrepareReset(t.Context(), code, "another horse"); err != nil {
		t.Errorf("the link is no longer good: %v", err)
	}
}

func TestSessionsThatGoOnAreNotEnded(t *testing.T) {
	e := emulator.Start(t)
	var ahead atomic.Int64 // of the clock
	p, ended := runningAt(t, e, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	up, err := p.SignUp(t.Context(), strings.ToLower(rand.Text())+"@example.com", "correct horse", "")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := p.check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for len(ended) > 0 {
		if ending := <-ended; ending.UserID == up.UserID {
			t.Errorf("got %+v", ending)
		}
	}
	ahead.Store(int64(2 * time.Hour))
	if err := p.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := p.seen.Size(); n != 0 {
		t.Errorf("%d people are remembered whose tokens have all expired", n)
	}
}

func TestWithoutAPIKeyNobodySignsInHere(t *testing.T) {
	e := emulator.Start(t)
	withKey, _ := running(t, e)
	up, err := withKey.SignUp(t.Context(), strings.ToLower(rand.Text())+"@example.com", "correct horse", "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(t.Context(), Options{ProjectID: emulator.Project, Emulator: e.Host, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Admit(t.Context(), up.IDToken); err != nil {
		t.Errorf("a token that Firebase gave: %v", err)
	}
	for name, call := range passwordCalls(t, p) {
		err := call()
		if kindOf(t, err, commands.Unavailable); !strings.Contains(err.Error(), "FIREBASE_API_KEY") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func passwordCalls(t *testing.T, p *Provider) map[string]func() error {
	ctx := t.Context()
	return map[string]func() error{
		"sign up": func() error { _, err := p.SignUp(ctx, "ada@example.com", "correct horse", ""); return err },
		"sign in": func() error { _, err := p.SignIn(ctx, "ada@example.com", "correct horse"); return err },
		"refresh": func() error { _, err := p.Refresh(ctx, "token-to-refresh", anyone); return err },
		"reset":   func() error { _, err := p.PrepareReset(ctx, "token-of-a-link", "correct horse"); return err },
		"update": func() error {
			_, err := p.PrepareUpdate(ctx, people.Claims{UserID: "u", Email: "ada@example.com"}, "correct horse",
				"another horse")
			return err
		},
		"verify": func() error {
			return p.VerifyEmail(ctx, "token-of-a-link", "correct horse", func(string) error { return nil })
		},
	}
}

// No server listens on the emulator's address.
func TestFirebaseThatCannotBeReached(t *testing.T) {
	t.Setenv("FIREBASE_AUTH_EMULATOR_HOST", "127.0.0.1:1")
	p, err := New(t.Context(),
		Options{ProjectID: emulator.Project, APIKey: "key-to-the-toolkit", Emulator: "127.0.0.1:1", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range passwordCalls(t, p) {
		err := call()
		kindOf(t, err, commands.Unavailable)
		for _, secret := range []string{"key-to-the-toolkit", "correct horse", "token-"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, err := range map[string]error{
		"mail a link": p.MailResetLink(t.Context(), "ada@example.com", 1), "mail a link that verifies": p.MailVerificationLink(t.Context(), "u", 1),
	} {
		if err == nil || strings.Contains(err.Error(), "key-to-the-toolkit") || strings.Contains(err.Error(), "ada@") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Any caller may request a link to any address. Links that Firebase will never mail are not retried.
func TestLinksThatFirebaseDoesNotMail(t *testing.T) {
	for code, want := range map[string]struct{ fails, forGood bool }{
		"EMAIL_NOT_FOUND": {false, false}, "INVALID_EMAIL": {true, true}, "USER_DISABLED": {true, true}, "TOO_MANY_ATTEMPTS_TRY_LATER : Wait": {true, false},
	} {
		err := unmailed(fmt.Errorf("call: %w", &googleapi.Error{Code: 400, Message: code}))
		if (err != nil) != want.fails || errors.Is(err, notify.ErrRecipientRefused) != want.forGood {
			t.Errorf("%s: %v", code, err)
		}
	}
	if err := unmailed(nil); err != nil {
		t.Error(err)
	}
}

func TestWhatFirebaseRefusesWith(t *testing.T) {
	for code, want := range map[string]struct {
		when  doing
		kind  commands.Kind
		field string
	}{
		"EMAIL_NOT_FOUND":             {signingIn, commands.Unauthenticated, ""},
		"INVALID_PASSWORD":            {signingIn, commands.Unauthenticated, ""},
		"INVALID_LOGIN_CREDENTIALS":   {signingIn, commands.Unauthenticated, ""},
		"INVALID_EMAIL":               {signingUp, commands.Invalid, "email"},
		"USER_DISABLED":               {signingIn, commands.Unauthenticated, ""},
		"EMAIL_EXISTS":                {signingUp, commands.Conflict, ""},
		"TOKEN_EXPIRED":               {refreshing, commands.Unauthenticated, ""},
		"INVALID_REFRESH_TOKEN":       {refreshing, commands.Unauthenticated, ""},
		"USER_NOT_FOUND":              {following, commands.Invalid, "token"},
		"EXPIRED_OOB_CODE":            {following, commands.Invalid, "token"},
		"INVALID_OOB_CODE":            {following, commands.Invalid, "token"},
		"OPERATION_NOT_ALLOWED":       {signingIn, commands.Unavailable, ""},
		"QUOTA_EXCEEDED : Exceeded q": {signingIn, commands.TooMany, ""},
		"API key not valid.":          {signingIn, commands.Unavailable, ""},
		"":                            {signingIn, commands.Unavailable, ""},
		"WEAK_PASSWORD : Password should be at least 6 characters":                               {signingUp, commands.Invalid, "password"},
		"PASSWORD_DOES_NOT_MEET_REQUIREMENTS : Missing password requirements: [a number]":        {changing, commands.Invalid, "newPassword"},
		"TOO_MANY_ATTEMPTS_TRY_LATER : Access to this account has been temporarily disabled ...": {signingIn, commands.TooMany, ""},
	} {
		body, err := json.Marshal(map[string]any{"error": map[string]any{"code": 400, "message": code}})
		if err != nil {
			t.Fatal(err)
		}
		for _, cause := range []error{
			fmt.Errorf("call: %w", &googleapi.Error{Code: 400, Message: code, Body: "the body"}),
			&oauth2.RetrieveError{Response: &http.Response{StatusCode: http.StatusBadRequest}, Body: body},
		} {
			got, ok := errors.AsType[*commands.Error](refusal(cause, want.when))
			if !ok || got.Kind != want.kind || want.field != "" && got.Fields[want.field] == "" ||
				want.field == "" && len(got.Fields) > 0 {
				t.Errorf("%s: got %+v", code, got)
			}
		}
	}
	weak, _ := errors.AsType[*commands.Error](
		refusal(&googleapi.Error{Message: "WEAK_PASSWORD : Password should be at least 6 characters"}, changing),
	)
	if weak.Fields["newPassword"] != "Password should be at least 6 characters" {
		t.Errorf("got %v", weak.Fields)
	}
}
