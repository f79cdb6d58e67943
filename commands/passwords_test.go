package commands_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
)

// settingPasswords is an identity provider that sets passwords in a step.
type settingPasswords struct {
	people.Passwords
	*steps
}

func (p settingPasswords) step(change people.PasswordChange, err error) (people.PasswordChange, error) {
	set := change.Set
	change.Set = func(ctx context.Context) error {
		if err := p.take("set"); err != nil {
			return err
		}
		return set(ctx)
	}
	return change, err
}

func (p settingPasswords) PrepareReset(ctx context.Context, token, password string) (people.PasswordChange, error) {
	return p.step(p.Passwords.PrepareReset(ctx, token, password))
}

func (p settingPasswords) PrepareUpdate(
	ctx context.Context, c people.Claims, current, password string,
) (people.PasswordChange, error) {
	return p.step(p.Passwords.PrepareUpdate(ctx, c, current, password))
}

const (
	oldPassword = "correct horse battery"
	newPassword = "another horse battery"
)

// If any step fails, the old password stays valid, and the same request succeeds when repeated.
func TestSettingAPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	provider := settingPasswords{w.identity, w.steps}
	setting := []string{"append user.sessions_ended", "set"}
	for name, set := range map[string]func(t *testing.T, up people.Session, link string) error{
		"with a mailed link": func(t *testing.T, _ people.Session, link string) error {
			_, err := people.ResetPassword(t.Context(), &people.Reclaimer{Writer: w.writer, People: &knownPeople{}}, provider, writer.By{}, link, newPassword)
			return err
		},
		"with the current one": func(t *testing.T, up people.Session, _ string) error {
			_, err := people.UpdatePassword(t.Context(), w.writer, provider, writer.By{}, up.Claims, oldPassword, newPassword)
			return err
		},
	} {
		for failing := range len(setting) + 1 {
			t.Run(name, func(t *testing.T) {
				email := uuid.NewString() + "@example.com"
				*w.steps = steps{}
				up, link := w.signUp(t, email), strings.Repeat("A", 42)+string(rune('A'+len(name)+failing))
				hash := sha256.Sum256([]byte(link))
				if _, err := w.pool.Exec(
					t.Context(), `insert into keep.mailed_tokens values ($1, 'reset', $2, now(), now() + interval '1 hour')`, hash[:],
					up.UserID,
				); err != nil {
					t.Fatal(err)
				}
				works := func(password string) bool {
					_, err := w.identity.SignIn(t.Context(), email, password)
					return err == nil
				}
				*w.steps = steps{failing: failing}
				err := set(t, up, link)
				if failing > 0 {
					if !errors.Is(err, errStep) || !works(oldPassword) || works(newPassword) {
						t.Errorf("got %v; the old password works: %v", err, works(oldPassword))
					}
					if diff := cmp.Diff(setting[:failing], w.taken); diff != "" {
						t.Errorf("the steps (-want +got):\n%s", diff)
					}
					*w.steps = steps{}
					err = set(t, up, link)
				}
				if err != nil || works(oldPassword) || !works(newPassword) {
					t.Errorf("got %v; the new password works: %v", err, works(newPassword))
				}
				if diff := cmp.Diff(setting, w.taken); diff != "" {
					t.Errorf("the steps (-want +got):\n%s", diff)
				}
				if facts := w.facts(t, events.UserStream(up.UserID)); !slices.Contains(facts, "user.sessions_ended") {
					t.Errorf("the facts are %v", facts)
				}
			})
		}
	}
}
