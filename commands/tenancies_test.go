package commands_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/tours"
	"flagledger/commands/notify"
	"flagledger/commands/tenants"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

func (d steppingDirectory) SetContact(
	ctx context.Context, tenantID string, version events.Revision, email, name *string,
) error {
	if err := d.take("note contact"); err != nil {
		return err
	}
	return d.Directory.SetContact(ctx, tenantID, version, email, name)
}

func (d steppingDirectory) ForgetTenant(ctx context.Context, tenantID string) error {
	if err := d.take("forget tenant"); err != nil {
		return err
	}
	return d.Directory.ForgetTenant(ctx, tenantID)
}

type steppingInbox struct {
	*inbox.Inbox
	*steps
}

func (i steppingInbox) ForgetTenant(ctx context.Context, tenantID string) error {
	if err := i.take("forget notifications"); err != nil {
		return err
	}
	return i.Inbox.ForgetTenant(ctx, tenantID)
}

func (w *world) tenancies() *tenants.Tenancies {
	contacts := steppingDirectory{w.directory, w.steps}
	return &tenants.Tenancies{
		Directory: contacts,
		Keepings:  []tenants.TenantData{contacts, tours.New(w.pool), steppingInbox{w.inbox, w.steps}},
	}
}

// If any step fails, the repeated request completes it.
func TestTenantsWithTheirContacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenancies := w.tenancies()
	owner := w.signUp(t, uuid.NewString()+"@example.com").UserID
	for failing := range 4 {
		id, key := uuid.NewString(), 0
		email, name, newEmail := uuid.NewString()+"@example.com", "Ada Lovelace", uuid.NewString()+"@example.com"
		// twice makes a request that fails at a step, and repeats it.
		twice := func(want []string, request func(do writer.Runner[state.Tenant]) error) {
			t.Helper()
			key++
			do := func() writer.Runner[state.Tenant] {
				return doing[state.Tenant](w,
					writer.By{Once: writer.NewOnce([]byte{byte(key)}, time.UnixMilli(int64(failing)))})
			}
			*w.steps = steps{failing: failing}
			if err := request(do()); errors.Is(err, errStep) != (failing > 0 && failing <= len(want)) {
				t.Errorf("got %v", err)
			}
			if done := min(max(failing, 1), len(want)); failing > 0 && !slices.Equal(w.taken, want[:done]) {
				t.Errorf("the steps are %v", w.taken)
			}
			*w.steps = steps{}
			if err := request(do()); err != nil {
				t.Error(err)
			}
		}
		noted := func() (found []bool) {
			for _, text := range []string{email, newEmail} {
				found = append(found, slices.Contains(w.tablesWith(t, text), "tenant_contacts"))
			}
			return found
		}
		twice([]string{"note contact", "append tenant.created"}, func(do writer.Runner[state.Tenant]) error {
			_, _, err := tenancies.Create(t.Context(), do, commands.CreateTenant{ID: id, Name: "Acme", Creator: "owner"},
				tenants.Contact{Email: &email, Name: &name})
			return err
		})
		if diff := cmp.Diff([]bool{true, false}, noted()); diff != "" {
			t.Errorf("created: the contact (-want +got):\n%s", diff)
		}
		twice([]string{"append tenant.updated", "note contact"}, func(do writer.Runner[state.Tenant]) error {
			to := "Acme Inc."
			_, _, err := tenancies.Update(t.Context(), do,
				commands.UpdateTenant{TenantRef: commands.TenantRef{TenantID: id}, Name: &to}, tenants.Contact{Email: &newEmail})
			return err
		})
		if diff := cmp.Diff([]bool{false, true}, noted()); diff != "" {
			t.Errorf("updated: the contact (-want +got):\n%s", diff)
		}
		if _, err := w.inbox.Add(
			t.Context(), notify.Notification{ID: uuid.NewString(), UserID: owner, TenantID: id},
		); err != nil {
			t.Fatal(err)
		}
		if kept := w.tablesWith(t, id); !slices.Contains(kept, "notifications") {
			t.Fatalf("of the tenant there is %v", kept)
		}
		twice(
			[]string{"append tenant.deleted", "forget tenant", "forget notifications"},
			func(do writer.Runner[state.Tenant]) error {
				_, err := tenancies.Delete(t.Context(), do, commands.DeleteTenant{TenantRef: commands.TenantRef{TenantID: id}})
				return err
			},
		)
		if diff := cmp.Diff([]bool{false, false}, noted()); diff != "" {
			t.Errorf("deleted: the contact (-want +got):\n%s", diff)
		}
		if left := w.tablesWith(t, id); len(left) > 0 {
			t.Errorf("of the deleted tenant there is something left in %v", left)
		}
		if diff := cmp.Diff(
			[]string{"tenant.created", "tenant.member_added", "tenant.updated", "tenant.deleted"},
			w.facts(t, events.TenantStream(id)),
		); diff != "" {
			t.Errorf("the facts (-want +got):\n%s", diff)
		}
	}
}

// largeUses takes longer to delete than a request may take.
type largeUses struct{ forgotten *int }

func (u largeUses) ForgetTenant(ctx context.Context, _ string) error {
	*u.forgotten++
	<-ctx.Done()
	return ctx.Err()
}

// The deletion of a tenant's usage may take longer than a request: a job does the rest. The reason for the interruption
// is reported.
func TestDeletingATenantWithManyUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forgotten := 0
		tenancies := &tenants.Tenancies{Uses: largeUses{&forgotten}}
		do := func(context.Context, commands.Command[state.Tenant]) (state.Tenant, writer.Done, error) {
			return state.Tenant{}, writer.Done{}, nil
		}
		began := time.Now()
		if _, err := tenancies.Delete(t.Context(), do, commands.DeleteTenant{}); err != nil ||
			time.Since(began) >= time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := tenancies.Delete(ctx, do, commands.DeleteTenant{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that ended: %v", err)
		}
		if err := tenancies.Forget(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a job that ended: %v", err)
		}
		if forgotten != 3 {
			t.Errorf("the uses were to be forgotten %d times, want 3", forgotten)
		}
	})
}

// No contact is stored for a person who may create no more tenants.
func TestNoContactWithoutATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenancies := w.tenancies()
	email := uuid.NewString() + "@example.com"
	create := commands.CreateTenant{
		ID:      uuid.NewString(),
		Name:    "Acme",
		Creator: "owner",
		Created: commands.CreatedBefore{Tenants: commands.MaxCreated},
	}
	_, _, err := tenancies.Create(t.Context(), doing[state.Tenant](w, writer.By{}), create,
		tenants.Contact{Email: &email})
	if commands.KindOf(err) != commands.Conflict || len(w.taken) > 0 {
		t.Errorf("got %v after %v", err, w.taken)
	}
}

// interruptedDirectory runs an action between the read and the write of a change of a contact.
type interruptedDirectory struct {
	steppingDirectory
	interrupt func()
}

func (d interruptedDirectory) ContactChanges(
	ctx context.Context, tenantID string, email, name *string,
) ([]events.ContactField, error) {
	changes, err := d.steppingDirectory.ContactChanges(ctx, tenantID, email, name)
	d.interrupt()
	return changes, err
}

// contact returns a tenant's contact and the number of facts about its changes.
func (w *world) contact(t *testing.T, tenantID string) (email, name string, facts int) {
	t.Helper()
	err := w.pool.QueryRow(t.Context(), `select coalesce(primary_email, ''), coalesce(contact_name, '') from keep.tenant_contacts where tenant_id = $1`, tenantID).
		Scan(&email, &name)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range w.store.Read(t.Context(), events.TenantStream(tenantID), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if updated, ok := r.Fact.(events.TenantUpdated); ok && len(updated.Contact) > 0 {
			facts++
		}
	}
	return email, name, facts
}

func TestContactsChangeInTheOrderOfTheirFacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenancies := w.tenancies()
	for _, c := range []struct {
		what        string
		first, then tenants.Contact
		// interrupted is true if the second change happens during the first, and false if it happens between two attempts at
		// the first.
		interrupted bool
		email, name string
		facts       int
	}{
		{"one that is made again", tenants.Contact{Email: new("a@example.com")}, tenants.Contact{Email: new("b@example.com")}, false, "b@example.com", "Ada", 2},
		{"one that is made again, of another part", tenants.Contact{Email: new("a@example.com")}, tenants.Contact{Name: new("Grace")}, false, "a@example.com", "Grace", 2},
		{"one that changes nothing, beside one that does", tenants.Contact{Email: new("old@example.com")}, tenants.Contact{Email: new("b@example.com")}, true, "b@example.com", "Ada", 1},
		{"one that sends a part as it is, beside one that changes it", tenants.Contact{Email: new("a@example.com"), Name: new("Ada")}, tenants.Contact{Name: new("Grace")}, true, "a@example.com", "Grace", 2},
		{"two that change something", tenants.Contact{Email: new("a@example.com")}, tenants.Contact{Name: new("Grace")}, true, "a@example.com", "Grace", 2},
	} {
		id := uuid.NewString()
		_, _, err := tenancies.Create(t.Context(), doing[state.Tenant](w, writer.By{}),
			commands.CreateTenant{ID: id, Name: "Acme", Creator: "owner"},
			tenants.Contact{Email: new("old@example.com"), Name: new("Ada")})
		if err != nil {
			t.Fatal(err)
		}
		update := func(tenancies *tenants.Tenancies, key byte, contact tenants.Contact) error {
			by := writer.By{Once: writer.NewOnce([]byte{key}, time.UnixMilli(1))}
			_, _, err := tenancies.Update(t.Context(), doing[state.Tenant](w, by),
				commands.UpdateTenant{TenantRef: commands.TenantRef{TenantID: id}}, contact)
			return err
		}
		then := func() {
			if err := update(tenancies, 2, c.then); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		}
		if c.interrupted {
			err = update(&tenants.Tenancies{Directory: interruptedDirectory{steppingDirectory{w.directory, w.steps}, then}}, 1,
				c.first)
		} else {
			*w.steps = steps{failing: 2} // the fact is appended, but the contact is not stored
			if err := update(tenancies, 1, c.first); !errors.Is(err, errStep) {
				t.Errorf("%s: %v", c.what, err)
			}
			*w.steps = steps{}
			then()
			err = update(tenancies, 1, c.first)
		}
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if email, name, facts := w.contact(t, id); email != c.email || name != c.name || facts != c.facts {
			t.Errorf("%s: the contact is %s, %s, with %d facts that tell of it; want %s, %s, %d", c.what, email, name, facts,
				c.email, c.name, c.facts)
		}
	}
}
