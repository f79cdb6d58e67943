package commands_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/tours"
	"flagledger/events"
)

func (d steppingDirectory) SetContact(ctx context.Context, tenantID string, email, name *string) error {
	if err := d.take("note contact"); err != nil {
		return err
	}
	return d.Directory.SetContact(ctx, tenantID, email, name)
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

func (w *world) tenancies() *commands.Tenancies {
	people := steppingDirectory{w.directory, w.steps}
	return &commands.Tenancies{Directory: people, Keepings: []commands.TenantData{people, tours.New(w.pool), steppingInbox{w.inbox, w.steps}}}
}

// Whichever step fails, the same request made again ends as if none had.
func TestTenantsWithTheirContacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenancies := w.tenancies()
	owner := w.signUp(t, uuid.NewString()+"@example.com").UserID
	for failing := range 4 {
		id, key := uuid.NewString(), 0
		email, name, newEmail := uuid.NewString()+"@example.com", "Ada Lovelace", uuid.NewString()+"@example.com"
		// twice makes a request that fails at a step, and the same request again.
		twice := func(want []string, request func(do commands.Doer[commands.Tenant]) error) {
			t.Helper()
			key++
			do := func() commands.Doer[commands.Tenant] {
				return doing[commands.Tenant](w, commands.By{Once: commands.NewOnce([]byte{byte(key)}, time.UnixMilli(int64(failing)))})
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
		twice([]string{"note contact", "append tenant.created"}, func(do commands.Doer[commands.Tenant]) error {
			_, _, err := tenancies.Create(t.Context(), do, commands.CreateTenant{ID: id, Name: "Acme", Creator: "owner"}, commands.Contact{Email: &email, Name: &name})
			return err
		})
		if diff := cmp.Diff([]bool{true, false}, noted()); diff != "" {
			t.Errorf("created: the contact (-want +got):\n%s", diff)
		}
		twice([]string{"append tenant.updated", "note contact"}, func(do commands.Doer[commands.Tenant]) error {
			to := "Acme Inc."
			_, _, err := tenancies.Update(t.Context(), do, commands.UpdateTenant{TenantRef: commands.TenantRef{TenantID: id}, Name: &to}, commands.Contact{Email: &newEmail})
			return err
		})
		if diff := cmp.Diff([]bool{false, true}, noted()); diff != "" {
			t.Errorf("updated: the contact (-want +got):\n%s", diff)
		}
		if _, err := w.inbox.Add(t.Context(), commands.Notification{ID: uuid.NewString(), UserID: owner, TenantID: id}); err != nil {
			t.Fatal(err)
		}
		if kept := w.tablesWith(t, id); !slices.Contains(kept, "notifications") {
			t.Fatalf("of the tenant there is %v", kept)
		}
		twice([]string{"append tenant.deleted", "forget tenant", "forget notifications"}, func(do commands.Doer[commands.Tenant]) error {
			_, err := tenancies.Delete(t.Context(), do, commands.DeleteTenant{TenantRef: commands.TenantRef{TenantID: id}})
			return err
		})
		if diff := cmp.Diff([]bool{false, false}, noted()); diff != "" {
			t.Errorf("deleted: the contact (-want +got):\n%s", diff)
		}
		if left := w.tablesWith(t, id); len(left) > 0 {
			t.Errorf("of the deleted tenant there is something left in %v", left)
		}
		if diff := cmp.Diff([]string{"tenant.created", "tenant.member_added", "tenant.updated", "tenant.deleted"}, w.facts(t, events.TenantStream(id))); diff != "" {
			t.Errorf("the facts (-want +got):\n%s", diff)
		}
	}
}

// Nothing is noted for somebody who may create no more tenants.
func TestNoContactWithoutATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenancies := w.tenancies()
	email := uuid.NewString() + "@example.com"
	create := commands.CreateTenant{ID: uuid.NewString(), Name: "Acme", Creator: "owner", Created: commands.CreatedBefore{Tenants: commands.MaxCreated}}
	_, _, err := tenancies.Create(t.Context(), doing[commands.Tenant](w, commands.By{}), create, commands.Contact{Email: &email})
	if commands.KindOf(err) != commands.Conflict || len(w.taken) > 0 {
		t.Errorf("got %v after %v", err, w.taken)
	}
}
