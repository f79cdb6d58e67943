package commands_test

import (
	"context"
	"errors"
	"iter"
	"slices"
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

// newcomer is an invited person with a verified address on the list of super users.
func (w *world) newcomer(t *testing.T) (c people.Claims, tenantID, pendingID string) {
	t.Helper()
	c = people.Claims{
		UserID:        uuid.NewString(),
		Email:         uuid.NewString() + "@example.com",
		EmailVerified: true,
		DisplayName:   "Ada",
		Provider:      "password",
	}
	tenantID, pendingID = uuid.NewString(), uuid.NewString()
	if _, err := w.directory.AddPending(t.Context(), tenantID, c.Email, pendingID, false); err != nil {
		t.Fatal(err)
	}
	do := func(cmd commands.Command[state.Tenant]) {
		t.Helper()
		if _, _, err := writer.Do(t.Context(), w.writer, writer.By{}, cmd); err != nil {
			t.Fatal(err)
		}
	}
	do(commands.CreateTenant{ID: tenantID, Name: "Acme", Creator: "owner"})
	do(commands.InviteMember{TenantRef: commands.TenantRef{TenantID: tenantID}, ID: pendingID, Role: events.DeveloperRole})
	*w.steps = steps{}
	return c, tenantID, pendingID
}

var lettingIn = []string{
	"save profile",
	"append user.registered",
	"append tenant.created",
	"append user.platform_role_changed",
	"pending memberships",
	"append tenant.member_joined",
	"forget",
	"visits",
}

// If any step of a first sign-in fails, the next sign-in completes it.
func TestAFirstSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for failing := range len(lettingIn) + 1 {
		name := "nothing fails"
		if failing > 0 {
			name = lettingIn[failing-1] + " fails"
		}
		t.Run(name, func(t *testing.T) {
			c, tenantID, _ := w.newcomer(t)
			signIn := w.signIn(&knownPeople{}, c.Email)
			*w.steps = steps{failing: failing}
			_, err := signIn.LetIn(t.Context(), writer.By{}, c)
			passed := slices.Contains([]string{"append tenant.member_joined", "forget"}, name[:len(name)-len(" fails")]) ||
				failing == 0
			if passed != (err == nil) || !passed && !errors.Is(err, errStep) {
				t.Errorf("got %v", err)
			}
			if !passed {
				if diff := cmp.Diff(lettingIn[:failing], w.taken); diff != "" {
					t.Errorf("the steps (-want +got):\n%s", diff)
				}
			}
			*w.steps = steps{}
			if _, err := signIn.LetIn(t.Context(), writer.By{}, c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(
				[]string{"user.registered", "user.platform_role_changed"}, w.facts(t, events.UserStream(c.UserID)),
			); diff != "" {
				t.Errorf("the facts of the person (-want +got):\n%s", diff)
			}
			joined := []string{"tenant.created", "tenant.member_added", "tenant.member_invited", "tenant.member_joined"}
			if diff := cmp.Diff(joined, w.facts(t, events.TenantStream(tenantID))); diff != "" {
				t.Errorf("the facts of the tenant (-want +got):\n%s", diff)
			}
			if waiting, err := w.directory.PendingMemberships(t.Context(), c.Email, false, 10); err != nil || len(waiting) > 0 {
				t.Errorf("the address still waits: %v, %v", waiting, err)
			}
		})
	}
}

func TestWhoIsShutOutIsNotNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _, _ := w.newcomer(t)
	if _, err := w.signIn(&knownPeople{shutOut: true}).
		LetIn(t.Context(), writer.By{}, c); commands.KindOf(err) != commands.Forbidden ||
		len(w.taken) > 0 {
		t.Errorf("got %v after %v", err, w.taken)
	}
}

// A node that does not know of an erasure yet stores the name, and removes it later.
func TestSigningInWhileBeingErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _, _ := w.newcomer(t)
	ctx := context.Background()
	signIn := w.signIn(&knownPeople{})
	if _, err := signIn.LetIn(ctx, writer.By{}, c); err != nil {
		t.Fatal(err)
	}
	if err := w.eraser("").Erase(ctx, c.UserID); err != nil {
		t.Fatal(err)
	}
	if _, err := signIn.LetIn(ctx, writer.By{}, c); commands.KindOf(err) != commands.Forbidden {
		t.Errorf("got %v", err)
	}
	if left := w.tablesWith(t, c.UserID, c.Email); len(left) > 0 {
		t.Errorf("something of the person is left in %v", left)
	}
}

func TestTheActiveTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	w.directory = directory.New(w.pool, func() time.Time { // gives every visit a time of its own
		now = now.Add(time.Second)
		return now
	})
	c, _, _ := w.newcomer(t)
	heard := &knownPeople{registered: true, tenants: []string{"first", "second"}, creator: c.UserID}
	signIn := w.signIn(heard)
	for _, step := range []struct{ visited, want string }{{"", "first"}, {"second", "second"}, {"elsewhere", "second"}} {
		if step.visited != "" {
			w.directory.NoteVisit(c.UserID, step.visited, time.Time{})
		}
		if active, err := signIn.LetIn(t.Context(), writer.By{}, c); err != nil || active != step.want {
			t.Errorf("after a visit to %q, the active tenant is %q: %v", step.visited, active, err)
		}
	}
}

// unreadable is a store in which a stream cannot be read.
type unreadable struct {
	events.Store
	stream string
}

func (u unreadable) Read(ctx context.Context, stream string, from events.Revision) iter.Seq2[events.Recorded, error] {
	if stream != u.stream {
		return u.Store.Read(ctx, stream, from)
	}
	return func(yield func(events.Recorded, error) bool) { yield(events.Recorded{}, errStep) }
}

func TestATenantThatCannotBeJoinedKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, broken, _ := w.newcomer(t)
	sound := w.newTenant(t)
	invite := commands.InviteMember{TenantRef: sound, Role: events.ViewerRole}
	if _, _, _, err := w.inviter().
		InviteMember(t.Context(), doing[state.Tenant](w, writer.By{}), invite, c.Email, uuid.NewString()); err != nil {
		t.Fatal(err)
	}
	signIn := w.signIn(&knownPeople{})
	joined := func(tenantID string) bool {
		return slices.Contains(w.facts(t, events.TenantStream(tenantID)), "tenant.member_joined")
	}
	signIn.Writer = writer.NewWriter(unreadable{w.store, events.TenantStream(broken)}, shown, writer.NoQuotas{}, time.Now)
	if _, err := signIn.LetIn(t.Context(), writer.By{}, c); err != nil || joined(broken) || !joined(sound.TenantID) {
		t.Errorf("joined the tenant that can be read: %v, the other: %v (%v)", joined(sound.TenantID), joined(broken), err)
	}
	signIn.Writer = w.writer
	if _, err := signIn.LetIn(t.Context(), writer.By{}, c); err != nil || !joined(broken) {
		t.Errorf("joined at the next sign-in: %v (%v)", joined(broken), err)
	}
}

// stuck is a store that never finishes reading the streams of tenants.
type stuck struct {
	events.Store
	streams []string
}

func (s stuck) Read(ctx context.Context, stream string, from events.Revision) iter.Seq2[events.Recorded, error] {
	if !slices.Contains(s.streams, stream) {
		return s.Store.Read(ctx, stream, from)
	}
	return func(yield func(events.Recorded, error) bool) {
		<-ctx.Done()
		yield(events.Recorded{}, ctx.Err())
	}
}

// Invitations to many busy tenants do not delay a person's sign-in for long, and do not keep them out of other tenants.
func TestBusyTenantsHoldUpNoSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _, _ := w.newcomer(t)
	busy := stuck{Store: w.store}
	invite := func(to commands.TenantRef) {
		t.Helper()
		if _, _, _, err := w.inviter().
			InviteMember(t.Context(), doing[state.Tenant](w, writer.By{}), commands.InviteMember{TenantRef: to, Role: events.ViewerRole}, c.Email, uuid.NewString()); err != nil {
			t.Fatal(err)
		}
	}
	for range 15 {
		tenant := w.newTenant(t)
		invite(tenant)
		busy.streams = append(busy.streams, events.TenantStream(tenant.TenantID))
	}
	sound := w.newTenant(t)
	invite(sound)
	signIn := w.signIn(&knownPeople{})
	signIn.Writer = writer.NewWriter(busy, shown, writer.NoQuotas{}, time.Now)
	began := time.Now()
	if _, err := signIn.LetIn(t.Context(), writer.By{}, c); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Minute { // each takes 5 s
		t.Errorf("the sign-in took %v", took)
	}
	if !slices.Contains(w.facts(t, events.TenantStream(sound.TenantID)), "tenant.member_joined") {
		t.Error("a tenant that is not busy was not joined")
	}
}
