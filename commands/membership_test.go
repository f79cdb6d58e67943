package commands_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
	"flagledger/events"
)

// joins makes a person a member of a tenant whom another one has invited, and returns when they joined.
func (w *world) joins(t *testing.T, tenant commands.TenantRef, userID string) time.Time {
	t.Helper()
	id := uuid.NewString()
	var state commands.Tenant
	for _, cmd := range []commands.Command[commands.Tenant]{
		commands.InviteMember{TenantRef: tenant, ID: id, Role: events.ViewerRole}, commands.JoinTenant{TenantRef: tenant, ID: id, UserID: userID},
	} {
		var err error
		if state, _, err = commands.Do(t.Context(), w.writer, commands.By{}, cmd); err != nil {
			t.Fatal(err)
		}
	}
	return state.Members[userID].CreatedAt
}

func TestUseConfirmsOnlyTheMembershipItIsOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, user := w.newTenant(t), w.signUp(t, uuid.NewString()+"@example.com").UserID
	confirmed := func() bool {
		t.Helper()
		state, err := commands.ReadTenant(t.Context(), w.writer, tenant.TenantID)
		if err != nil {
			t.Fatal(err)
		}
		yes, err := commands.HasConfirmed(t.Context(), w.directory, state, user)
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	first := w.joins(t, tenant, user)
	if confirmed() {
		t.Error("a membership is confirmed without a use")
	}
	w.directory.NoteUse(user, tenant.TenantID, first)
	if !confirmed() {
		t.Error("a use does not confirm")
	}
	another := directory.New(w.pool, time.Now) // of another node, which has not written its uses yet
	another.NoteUse(user, tenant.TenantID, first)
	if _, _, err := commands.Do(
		t.Context(), w.writer, commands.By{}, commands.RemoveMember{TenantRef: tenant, UserID: user},
	); err != nil {
		t.Fatal(err)
	}
	second := w.joins(t, tenant, user)
	if _, err := another.UsedTenants(t.Context(), user); err != nil { // which writes them
		t.Fatal(err)
	}
	if confirmed() {
		t.Error("a use of the former membership confirms the new one")
	}
	late := directory.New(w.pool, func() time.Time { return second.Add(-time.Hour) }) // of a node whose clock is behind
	if err := late.RecordUse(t.Context(), user, tenant.TenantID, second); err != nil {
		t.Fatal(err)
	}
	if !confirmed() {
		t.Error("a use of a node whose clock is behind does not confirm")
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
		uses    string
		want    string
	}{
		{nil, nil, "", ""},
		{[]string{"own", "added"}, map[string]time.Time{"added": began}, "", "own"},
		{[]string{"added", "more"}, map[string]time.Time{"added": began, "more": began}, "", ""},
		{[]string{"added", "more"}, map[string]time.Time{"added": began, "more": began}, "more", "more"},
		{[]string{"added", "more"}, map[string]time.Time{"added": began, "more": began}, "added", "added"},
		{[]string{"added", "more"}, map[string]time.Time{"added": began, "more": began.Add(time.Hour)}, "", "added"},
	} {
		if c.uses != "" {
			w.directory.NoteUse(user, c.uses, c.joined[c.uses])
		}
		people := &people{tenants: c.tenants, joined: c.joined}
		if got, err := commands.CanonicalTenant(t.Context(), people, w.directory, user, c.tenants); err != nil ||
			got != c.want {
			t.Errorf("of %v, having used %q, it is %q, want %q: %v", c.tenants, c.uses, got, c.want, err)
		}
	}
}
