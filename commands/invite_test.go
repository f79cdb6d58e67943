package commands_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// doing runs commands as one request does.
func doing[S any, P state.State[S]](w *world, by writer.By) writer.Runner[S] {
	return func(ctx context.Context, cmd commands.Command[S]) (S, writer.Done, error) {
		return writer.Do[S, P](ctx, w.writer, by, cmd)
	}
}

func (d steppingDirectory) AddPending(
	ctx context.Context, tenantID, email, newID string, mustAccept bool,
) (string, error) {
	if err := d.take("note address"); err != nil {
		return "", err
	}
	return d.Directory.AddPending(ctx, tenantID, email, newID, mustAccept)
}

func (d steppingDirectory) SaveInvitationEmail(ctx context.Context, id, email string) error {
	if err := d.take("note address"); err != nil {
		return err
	}
	return d.Directory.SaveInvitationEmail(ctx, id, email)
}

// noInvitations is a read model that shows no invitation yet.
type noInvitations struct{ *steps }

func (n noInvitations) HasPendingInvitation(context.Context, string) (bool, error) {
	return false, n.take("pending invitation")
}

func (w *world) inviter() *people.Inviter {
	return &people.Inviter{
		Writer:      w.writer,
		Directory:   steppingDirectory{w.directory, w.steps},
		Invitations: noInvitations{w.steps},
	}
}

// newTenant creates a tenant.
func (w *world) newTenant(t *testing.T) commands.TenantRef {
	t.Helper()
	ref := commands.TenantRef{TenantID: uuid.NewString()}
	if _, _, err := writer.Do(
		t.Context(), w.writer, writer.By{}, commands.CreateTenant{ID: ref.TenantID, Name: "Acme", Creator: "owner"},
	); err != nil {
		t.Fatal(err)
	}
	*w.steps = steps{}
	return ref
}

// If any step fails, the retry leaves one pending member, whose address is stored first.
func TestInvitingAMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inviting := []string{"note address", "append tenant.member_invited"}
	for failing := range len(inviting) + 1 {
		tenant, email := w.newTenant(t), uuid.NewString()+"@example.com"
		invite := func() (string, state.Member, error) {
			id, m, _, err := w.inviter().InviteMember(t.Context(), doing[state.Tenant](w, writer.By{}),
				commands.InviteMember{TenantRef: tenant, Role: events.ViewerRole}, email, uuid.NewString())
			return id, m, err
		}
		*w.steps = steps{failing: failing}
		id, m, err := invite()
		if failing > 0 {
			if !errors.Is(err, errStep) {
				t.Errorf("got %v", err)
			}
			*w.steps = steps{}
			id, m, err = invite()
		}
		if err != nil || !m.Pending || m.Role != events.ViewerRole {
			t.Fatalf("got %+v, %v", m, err)
		}
		if diff := cmp.Diff(inviting, w.taken); diff != "" {
			t.Errorf("the steps (-want +got):\n%s", diff)
		}
		waiting, err := w.directory.PendingMemberships(t.Context(), email, false, 10)
		if diff := cmp.Diff([]commands.PendingMember{{TenantID: tenant.TenantID, ID: id}}, waiting); diff != "" ||
			err != nil {
			t.Errorf("who waits (-want +got):\n%s%v", diff, err)
		}
		if _, _, err := invite(); commands.KindOf(err) != commands.Conflict {
			t.Errorf("invited twice: %v", err)
		}

		*w.steps = steps{failing: 2} // the address cannot be forgotten
		remove := func(by writer.By) error {
			_, err := w.inviter().
				RemoveMember(t.Context(), doing[state.Tenant](w, by), commands.RemoveMember{TenantRef: tenant, UserID: id}, id)
			return err
		}
		once := func() writer.By { return writer.By{Once: writer.NewOnce([]byte(id), time.UnixMilli(0))} }
		if err := remove(once()); !errors.Is(err, errStep) {
			t.Errorf("got %v", err)
		}
		if err := remove(once()); err != nil { // the same request
			t.Error(err)
		}
		if waiting, err := w.directory.PendingMemberships(t.Context(), email, false, 10); err != nil || len(waiting) > 0 {
			t.Errorf("somebody still waits: %v, %v", waiting, err)
		}
	}
}

func TestInvitingToThePlatform(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inviting := []string{"pending invitation", "note address", "append invitation.created"}
	for failing := range len(inviting) + 1 {
		email, id := uuid.NewString()+"@example.com", uuid.NewString()
		invite := func() error {
			_, _, err := w.inviter().InviteToPlatform(t.Context(), doing[state.Invitation](w, writer.By{}),
				commands.CreateInvitation{ID: id, Role: events.PlatformViewer, Now: time.Now()}, email)
			return err
		}
		*w.steps = steps{failing: failing}
		if err := invite(); errors.Is(err, errStep) != (failing > 0) {
			t.Errorf("got %v", err)
		}
		c := people.Claims{UserID: uuid.NewString(), Email: email, EmailVerified: true}
		if failing > 0 {
			*w.steps = steps{}
			if _, _, err := w.inviter().
				AcceptToPlatform(t.Context(), writer.By{}, c, time.Now()); commands.KindOf(err) != commands.NotFound {
				t.Errorf("an invitation that was not made is accepted: %v", err)
			}
			if err := invite(); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(inviting, w.taken); diff != "" {
			t.Errorf("the steps (-want +got):\n%s", diff)
		}
		if known, err := w.directory.InvitationEmail(t.Context(), id); err != nil || known != email {
			t.Errorf("the address is %q: %v", known, err)
		}
		if _, err := w.signIn(&knownPeople{}).LetIn(t.Context(), writer.By{}, c); err != nil {
			t.Fatal(err)
		}
		unproven := c
		unproven.EmailVerified = false
		if _, _, err := w.inviter().
			AcceptToPlatform(t.Context(), writer.By{}, unproven, time.Now()); commands.KindOf(err) != commands.NotFound {
			t.Errorf("it is accepted with an address that is not verified: %v", err)
		}
		if accepted, _, err := w.inviter().
			AcceptToPlatform(t.Context(), writer.By{}, c, time.Now()); err != nil ||
			accepted.ID != id {
			t.Errorf("accepted %q: %v", accepted.ID, err)
		}
	}
}
