package commands_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/tours"
	"flagledger/commands/notify"
	"flagledger/commands/people"
	"flagledger/events"
	"flagledger/migrations/pgtest"
)

// tablesWith lists the tables of schema keep that contain a text.
func (w *world) tablesWith(t *testing.T, texts ...string) []string {
	t.Helper()
	return pgtest.TablesWith(t, w.pool, "keep", texts...)
}

// person has data in every keeping.
type person struct{ id, email, tenant string }

var keptOfAPerson = []string{
	"declined_invitations",
	"devices",
	"invitations",
	"mailed_invitations",
	"mailed_tokens",
	"notifications",
	"passwords",
	"pending_members",
	"people",
	"product_tours",
	"refresh_tokens",
	"reset_requests",
	"sandbox_requests",
	"tenant_contacts",
	"tenant_use",
	"window_slots",
}

// known creates a person with data in every keeping.
func (w *world) known(t *testing.T) person {
	t.Helper()
	p := person{email: "ada-" + uuid.NewString() + "@example.com", tenant: uuid.NewString()}
	p.id = w.signUp(t, p.email).UserID
	shouted := strings.ToUpper(p.email)
	pending, err := w.directory.AddPending(t.Context(), uuid.NewString(), shouted, uuid.NewString(), false)
	if err != nil || pending == "" {
		t.Fatalf("the pending member is %q: %v", pending, err)
	}
	err = errors.Join(w.directory.SaveVisit(t.Context(), p.id, p.tenant, time.Time{}),
		w.directory.NoteDeclined(t.Context(), p.tenant, p.id),
		w.directory.SaveInvitationEmail(t.Context(), uuid.NewString(), shouted),
		w.directory.SetContact(t.Context(), uuid.NewString(), 3, &shouted, nil),
		w.directory.SetContact(t.Context(), p.tenant, 3, nil, &p.email), w.identity.ForgotPassword(t.Context(), shouted),
		w.links.QueueSandboxLink(t.Context(), shouted, "Ada", time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.inbox.Register(t.Context(), p.id, inbox.Device{Token: "token of " + p.id}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.inbox.Add(
		t.Context(), notify.Notification{ID: uuid.NewString(), UserID: p.id, Title: "Dear " + p.email},
	); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(
		t.Context(), `insert into keep.mailed_invitations values ($1, $2, now())`, rand.Int64(), shouted,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(
		t.Context(), `insert into keep.window_slots values ('invitation mails', $1, $2, now() + interval '1 hour')`,
		p.email, uuid.NewString(),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(
		t.Context(), `insert into keep.mailed_tokens values ($1, 'reset', $2, now(), now() + interval '1 hour')`,
		uuid.NewString(), p.id,
	); err != nil {
		t.Fatal(err)
	}
	if _, err := tours.New(w.pool).Set(t.Context(), p.id, "flags@2", nil, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(keptOfAPerson, w.tablesWith(t, p.id, p.email)); diff != "" {
		t.Fatalf("what is kept of a person (-want +got):\n%s", diff)
	}
	return p
}

// stepEraser counts each call of an erasure as a step.
type stepEraser struct {
	*steps
	keeping people.PersonalData
	name    string
	w       *world
	tenant  string
}

func (e stepEraser) Knows(ctx context.Context, userID string) (bool, error) {
	if err := e.take("ask " + e.name); err != nil {
		return false, err
	}
	return e.keeping.Knows(ctx, userID)
}

func (e stepEraser) Erase(ctx context.Context, userID string) error {
	if err := e.take("erase " + e.name); err != nil {
		return err
	}
	return e.keeping.Erase(ctx, userID)
}

func (e stepEraser) CreatedBy(context.Context, string) ([]string, error) {
	return []string{e.tenant}, e.take("tenants created")
}

func (e stepEraser) ForgetContactNames(ctx context.Context, tenantIDs []string) error {
	if err := e.take("forget contacts"); err != nil {
		return err
	}
	return e.w.directory.ForgetContactNames(ctx, tenantIDs)
}

func (e stepEraser) Delete(context.Context, string) error { return e.take("delete account") }

func (w *world) eraser(tenant string) *people.Eraser {
	outside := stepEraser{steps: w.steps, w: w, tenant: tenant}
	return &people.Eraser{
		Writer: w.writer, Tenants: outside, Contacts: outside, Account: outside, Keepings: []people.PersonalData{
			stepEraser{steps: w.steps, keeping: local.NewAccounts(w.pool), name: "accounts"},
			stepEraser{steps: w.steps, keeping: w.links, name: "links"},
			stepEraser{steps: w.steps, keeping: jobs.NewWindows(w.pool), name: "invited"},
			stepEraser{steps: w.steps, keeping: w.directory, name: "directory"},
			stepEraser{steps: w.steps, keeping: tours.New(w.pool), name: "tours"},
			stepEraser{steps: w.steps, keeping: w.inbox, name: "inbox"},
		},
	}
}

var erasing = []string{
	"ask accounts",
	"ask links",
	"ask invited",
	"ask directory",
	"ask tours",
	"ask inbox",
	"append user.erased",
	"tenants created",
	"forget contacts",
	"erase accounts",
	"erase links",
	"erase invited",
	"erase directory",
	"erase tours",
	"erase inbox",
	"delete account",
}

func TestErasingLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bystander, gone := w.known(t), w.known(t)
	w.directory.NoteVisit(gone.id, gone.tenant, time.Time{}) // which this node has not saved yet
	if err := w.eraser(gone.tenant).Erase(t.Context(), gone.id); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(erasing, w.taken); diff != "" {
		t.Errorf("the steps (-want +got):\n%s", diff)
	}
	if _, err := w.directory.Visits(t.Context(), gone.id); err != nil { // saves what this node has noted
		t.Fatal(err)
	}
	if _, err := w.inbox.Add(t.Context(), notify.Notification{ID: uuid.NewString(), UserID: gone.id}); commands.KindOf(err) != commands.NotFound {
		t.Errorf("somebody erased is notified: %v", err)
	}
	if left := w.tablesWith(t, gone.id, gone.email); len(left) > 0 {
		t.Errorf("something of the person is left in %v", left)
	}
	if diff := cmp.Diff(keptOfAPerson, w.tablesWith(t, bystander.id, bystander.email)); diff != "" {
		t.Errorf("what is kept of somebody else (-want +got):\n%s", diff)
	}
}

// A repeated erasure completes, whichever step failed.
func TestErasingIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, step := range erasing {
		t.Run(step, func(t *testing.T) {
			p := w.known(t)
			*w.steps = steps{failing: n + 1}
			if err := w.eraser(p.tenant).Erase(t.Context(), p.id); !errors.Is(err, errStep) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(erasing[:n+1], w.taken); diff != "" {
				t.Errorf("the steps (-want +got):\n%s", diff)
			}
			facts, left := w.facts(t, events.UserStream(p.id)), w.tablesWith(t, p.id, p.email)
			if shutOut := slices.Contains(facts, "user.erased"); !shutOut && !slices.Equal(left, keptOfAPerson) {
				t.Errorf("of somebody who is still let in there is only %v", left)
			}
			*w.steps = steps{}
			for range 2 {
				if err := w.eraser(p.tenant).Erase(t.Context(), p.id); err != nil {
					t.Fatal(err)
				}
			}
			if left := w.tablesWith(t, p.id, p.email); len(left) > 0 {
				t.Errorf("something of the person is left in %v", left)
			}
			if facts := w.facts(t, events.UserStream(p.id)); !slices.Equal(facts, []string{"user.erased"}) {
				t.Errorf("the facts are %v", facts)
			}
		})
	}
}

func TestErasingNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := uuid.NewString()
	if err := w.eraser("").Erase(t.Context(), id); commands.KindOf(err) != commands.NotFound {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(
		[]string{"ask accounts", "ask links", "ask invited", "ask directory", "ask tours", "ask inbox"}, w.taken,
	); diff != "" {
		t.Errorf("the steps (-want +got):\n%s", diff)
	}
}
