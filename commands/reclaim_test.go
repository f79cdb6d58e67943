package commands_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/commands/tenants"
	"flagledger/commands/writer"
	"flagledger/events"
)

// A new password that verifies the address removes what the account created and joined before. If any step fails, the
// old password stays valid, and the repeated request does the rest.
func TestResettingThePasswordOfAnAccountThatIsNotVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	provider := settingPasswords{w.identity, w.steps}
	all := []string{"append user.sessions_ended", "append tenant.deleted", "append tenant.created", "set"}
	for failing := range len(all) + 1 {
		email := uuid.NewString() + "@example.com"
		*w.steps = steps{}
		up, link := w.signUp(t, email), strings.Repeat("A", 42)+string(rune('A'+failing))
		me, by := up.UserID, writer.By{Actor: events.Actor{Kind: events.UserActor, ID: up.UserID}}
		made := commands.NewID()
		if _, _, err := writer.Do(
			t.Context(), w.writer, by, commands.CreateTenant{ID: made, Name: "made", Creator: me},
		); err != nil {
			t.Fatal(err)
		}
		heard := &knownPeople{registered: true}
		node := writer.NewWriter(
			stepping{w.store, w.steps},
			func(_ context.Context, _ events.Position, names []string) bool {
				if names == nil { // the head of the log: this node does not know the tenant before
					heard.tenants = []string{made}
				}
				return true
			},
			writer.NoQuotas{},
			time.Now,
		)
		hash := sha256.Sum256([]byte(link))
		if _, err := w.pool.Exec(
			t.Context(), `insert into keep.mailed_tokens values ($1, 'reset', $2, now(), now() + interval '1 hour')`, hash[:], me,
		); err != nil {
			t.Fatal(err)
		}
		reset := func() error {
			_, err := people.ResetPassword(t.Context(), &people.Reclaimer{
				Writer: node, People: heard, Tenancies: &tenants.Tenancies{}, Keepings: []people.PersonalData{w.inbox},
			}, provider, writer.By{RequestID: "r"}, link, newPassword)
			return err
		}
		*w.steps = steps{failing: failing}
		err := reset()
		if failing > 0 {
			if _, old := w.identity.SignIn(
				t.Context(), email, oldPassword,
			); !errors.Is(err, errStep) && commands.KindOf(err) != commands.Unavailable ||
				old != nil {
				t.Errorf("step %d: got %v, and with the old password %v", failing, err, old)
			}
			*w.steps = steps{}
			err = reset()
		} else if diff := cmp.Diff(all, w.taken); diff != "" {
			t.Errorf("the steps (-want +got):\n%s", diff)
		}
		if err != nil {
			t.Errorf("step %d: %v", failing, err)
		}
		in, err := w.identity.SignIn(t.Context(), email, newPassword)
		if err != nil || !in.EmailVerified || in.DisplayName != "" {
			t.Errorf("step %d: signed in as %+v: %v", failing, in.Claims, err)
		}
		if names := w.facts(t, events.TenantStream(made)); !slices.Contains(names, "tenant.deleted") {
			t.Errorf("step %d: the tenant goes on: %v", failing, names)
		}
	}
}
