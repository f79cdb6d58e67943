// Package identitytest is the conformance suite of identity providers.
package identitytest

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"flagledger/commands"
	"flagledger/commands/people"
)

// Subject is the provider under test, without people of earlier runs. It does not trust unverified addresses.
type Subject struct {
	people.Identity
	// Token returns the token of the newest link that was mailed to an address, to set a new password or to verify it. It
	// waits until the token differs from last.
	Token func(t testing.TB, email string, verify bool, last string) string
	// Later waits until the next second, because sessions record their start in seconds.
	Later func(t testing.TB)
	// KnowsFirst says that the provider knows whether an address was verified before.
	KnowsFirst bool
}

// refresh refreshes a session without a check.
func (s Subject) refresh(ctx context.Context, token string) (people.Session, error) {
	return s.Refresh(ctx, token, func(people.Claims) error { return nil })
}

// resetPassword sets a password and returns the ended sessions.
func (s Subject) resetPassword(ctx context.Context, token, password string) (commands.EndSessions, error) {
	return set(ctx)(s.PrepareReset(ctx, token, password))
}

func (s Subject) updatePassword(
	ctx context.Context, c people.Claims, current, password string,
) (commands.EndSessions, error) {
	return set(ctx)(s.PrepareUpdate(ctx, c, current, password))
}

func set(ctx context.Context) func(people.PasswordChange, error) (commands.EndSessions, error) {
	return func(change people.PasswordChange, err error) (commands.EndSessions, error) {
		if err != nil {
			return commands.EndSessions{}, err
		}
		return change.Ends, change.Set(ctx)
	}
}

var errBroken = &commands.Error{Kind: commands.Unavailable, Detail: "the service is down"}

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

// refused checks the kind and the fields of an error, and returns its detail.
func refused(t testing.TB, err error, kind commands.Kind, fields ...string) string {
	t.Helper()
	e, ok := errors.AsType[*commands.Error](err)
	if !ok || e.Kind != kind || e.Detail == "" {
		t.Errorf("got error %v, want kind %d", err, kind)
		return ""
	}
	if got := slices.Sorted(maps.Keys(e.Fields)); !slices.Equal(got, slices.Sorted(slices.Values(fields))) {
		t.Errorf("the error names the fields %v, want %v", e.Fields, fields)
	}
	return e.Detail
}

// Run tests a provider.
func Run(t *testing.T, s Subject) {
	for name, test := range map[string]func(*testing.T, Subject){
		"sign-up signs in": signUpSignsIn,
		"somebody whose address is known to be theirs signs up":                       verifiedSignUp,
		"an address is marked as verified":                                            markedVerified,
		"what is wrong with a sign-up is told at once":                                wrongSignUp,
		"an address makes one person, also when two sign up at once":                  oneAddressIsOnePerson,
		"sign-in takes the address in any case":                                       signInInAnyCase,
		"a wrong password and an unknown address are refused alike":                   refusedAlike,
		"refreshing goes on with the session":                                         refreshGoesOn,
		"all sessions of a person end":                                                endedIsNotRefreshed,
		"a session that was revoked is not refreshed":                                 revokedIsNotRefreshed,
		"tokens that do not hold are refused":                                         badTokensAreRefused,
		"a forgotten password is reset by a mailed link, once, and ends the sessions": forgottenPassword,
		"whoever knows the password changes it":                                       changedPassword,
		"an address is verified by a mailed link, once":                               verifiedAddress,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}
