package commands_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// joins adds an invited person to a tenant, and returns when they joined.
func (w *world) joins(t *testing.T, tenant commands.TenantRef, userID string) time.Time {
	t.Helper()
	id := uuid.NewString()
	var joined state.Tenant
	for _, cmd := range []commands.Command[state.Tenant]{
		commands.InviteMember{TenantRef: tenant, ID: id, Role: events.ViewerRole}, commands.JoinTenant{TenantRef: tenant, ID: id, UserID: userID},
	} {
		var err error
		if joined, _, err = writer.Do(t.Context(), w.writer, writer.By{}, cmd); err != nil {
			t.Fatal(err)
		}
	}
	return joined.Members[userID].CreatedAt
}

func TestVisitConfirmsOnlyItsOwnMembership(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, user := w.newTenant(t), w.signUp(t, uuid.NewString()+"@example.com").UserID
	confirmed := func() bool {
		t.Helper()
		state, err := writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
		if err != nil {
			t.Fatal(err)
		}
		yes, err := people.HasConfirmed(t.Context(), w.directory, state, user)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	first := w.joins(t, tenant, user)
	if confirmed() {
		t.Error("a membership is confirmed without a visit")
	}
	w.directory.NoteVisit(user, tenant.TenantID, first)
	if !confirmed() {
		t.Error("a visit does not confirm")
	}
	another := directory.New(w.pool, time.Now) // another node, which has not saved its visits yet
	another.NoteVisit(user, tenant.TenantID, first)
	if _, _, err := writer.Do(
		t.Context(), w.writer, writer.By{}, commands.RemoveMember{TenantRef: tenant, UserID: user},
	); err != nil {
		t.Fatal(err)
	}
	second := w.joins(t, tenant, user)
	if _, err := another.Visits(t.Context(), user); err != nil { // saves them
		t.Fatal(err)
	}
	if confirmed() {
		t.Error("a visit of the former membership confirms the new one")
	}
	late := directory.New(w.pool, func() time.Time { return second.Add(-time.Hour) }) // a node whose clock is behind
	if err := late.SaveVisit(t.Context(), user, tenant.TenantID, second); err != nil {
		t.Fatal(err)
	}
	if !confirmed() {
		t.Error("a visit on a node whose clock is behind does not confirm")
	}
}

func TestCanonicalTenantIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := w.signUp(t, uuid.NewString()+"@example.com").UserID
	began := time.Now()
	for _, c := range []struct {
		tenants []string
		joined  map[string]time.Time
		visited string
		want    string
	}{
		{nil, nil, "", ""},
		{[]string{"own", "added"}, map[string]time.Time{"added": began}, "", "own"},
		{[]string{"added", "more"}, map[string]time.Time{"added": began, "more": began}, "", ""},
		{[]string{"added", "more"}, map[string]time.Time{"added": began, "more": began}, "more", "more"},
		{[]string{"added", "more"}, map[string]time.Time{"added": began, "more": began}, "added", "added"},
		{[]string{"added", "more"}, map[string]time.Time{"added": began, "more": began.Add(time.Hour)}, "", "added"},
		{[]string{"readded", "more", "own"}, map[string]time.Time{"readded": began, "more": began}, "more", "own"},
	} {
		if c.visited != "" {
			w.directory.NoteVisit(user, c.visited, c.joined[c.visited])
		}
		known := &knownPeople{tenants: c.tenants, joined: c.joined}
		if got, err := people.CanonicalTenant(t.Context(), known, w.directory, user, c.tenants); err != nil ||
			got != c.want {
			t.Errorf("of %v, after a visit to %q, it is %q, want %q: %v", c.tenants, c.visited, got, c.want, err)
		}
	}
}

// do runs a command as a request does.
func (w *world) do(ctx context.Context, cmd commands.Command[state.Tenant]) (state.Tenant, writer.Done, error) {
	return writer.Do(ctx, w.writer, writer.By{}, cmd)
}

// invites has a person invited again who has declined the tenant's invitation.
func (w *world) invites(t *testing.T, tenant commands.TenantRef, c people.Claims) {
	t.Helper()
	if err := w.directory.NoteDeclined(t.Context(), tenant.TenantID, c.UserID); err != nil {
		t.Fatal(err)
	}
	id, err := w.directory.AddPending(t.Context(), tenant.TenantID, c.Email, uuid.NewString(), true)
	if err != nil {
		t.Fatal(err)
	}
	invite := commands.InviteMember{TenantRef: tenant, ID: id, Role: events.ViewerRole, MustAccept: true}
	if _, _, err := w.do(t.Context(), invite); err != nil {
		t.Fatal(err)
	}
}

// If any step of an answer to an invitation fails, at the latest the next attempt forgets the address.
func TestAnswerThatFailsIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signIn := w.signIn(&knownPeople{})
	for name, c := range map[string]struct {
		steps    []string
		answer   func(people.Claims, commands.TenantRef) error
		declined bool // afterwards
	}{
		"accept": {
			steps: []string{"append tenant.member_joined", "forget declined", "forget"},
			answer: func(c people.Claims, of commands.TenantRef) error {
				_, err := signIn.AcceptMembership(t.Context(), w.do, c, of.TenantID)
				return err
			},
		},
		"decline": {
			steps: []string{"append tenant.member_removed", "forget"},
			answer: func(c people.Claims, of commands.TenantRef) error {
				leave := commands.LeaveTenant{RemoveMember: commands.RemoveMember{TenantRef: of}}
				_, err := signIn.DeclineMembership(t.Context(), w.do, c, leave)
				return err
			},
			declined: true,
		},
	} {
		for failing := range len(c.steps) + 1 {
			tenant, email := w.newTenant(t), uuid.NewString()+"@example.com"
			claims := people.Claims{UserID: w.signUp(t, email).UserID, Email: email, EmailVerified: true}
			w.invites(t, tenant, claims)
			*w.steps = steps{failing: failing}
			err := c.answer(claims, tenant)
			if (err == nil) != (failing == 0) {
				t.Errorf("%s, of which step %d fails: %v", name, failing, err)
			}
			if diff := cmp.Diff(c.steps, w.taken); failing == 0 && diff != "" {
				t.Errorf("the steps of %s (-want +got):\n%s", name, diff)
			}
			*w.steps = steps{}
			if err := c.answer(claims, tenant); err != nil && commands.KindOf(err) != commands.NotFound {
				t.Errorf("%s after step %d failed: %v", name, failing, err)
			}
			declined, err := w.directory.HasDeclined(t.Context(), tenant.TenantID, claims.UserID)
			if err != nil || declined != c.declined {
				t.Errorf("after %s, of which step %d failed, they have declined: %v, %v", name, failing, declined, err)
			}
			id, err := w.directory.PendingMembership(t.Context(), tenant.TenantID, email)
			if err != nil || id != "" {
				t.Errorf("after %s, of which step %d failed, the address is kept: %v", name, failing, err)
			}
		}
	}
}
