package commands_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/notify"
	"flagledger/commands/people"
	"flagledger/commands/tenants"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// titles lists the titles of a person's notifications, the newest first.
func (w *world) titles(t *testing.T, userID string) (titles []string) {
	t.Helper()
	page, err := w.inbox.List(t.Context(), userID, inbox.List{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range page.Notifications {
		titles = append(titles, n.Title)
	}
	return titles
}

func (w *world) tenant(t *testing.T, creator string) (id string) {
	t.Helper()
	id = uuid.NewString()
	if _, _, err := writer.Do(
		t.Context(), w.writer, writer.By{}, commands.CreateTenant{ID: id, Name: "Acme", Creator: creator},
	); err != nil {
		t.Fatal(err)
	}
	return id
}

func (w *world) join(t *testing.T, tenantID, userID string, role events.Role) {
	t.Helper()
	tenant, id := commands.TenantRef{TenantID: tenantID}, uuid.NewString()
	for _, cmd := range []commands.Command[state.Tenant]{
		commands.InviteMember{TenantRef: tenant, ID: id, Role: role}, commands.JoinTenant{TenantRef: tenant, ID: id, UserID: userID},
	} {
		if _, _, err := writer.Do(t.Context(), w.writer, writer.By{}, cmd); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.directory.SaveProfile(t.Context(), people.Claims{UserID: userID}); err != nil {
		t.Fatal(err)
	}
	w.directory.NoteVisit(userID, tenantID, time.Time{})
}

// The sender gets the same error, whatever is wrong with a recipient.
func TestRecipients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := &notify.Notifications{Writer: w.writer, Inbox: w.inbox, Visits: w.directory}
	me, stranger := w.signUp(t, uuid.NewString()+"@example.com").UserID, w.signUp(t, uuid.NewString()+"@example.com").UserID
	acme := w.tenant(t, me)
	pending := uuid.NewString()
	if _, _, err := writer.Do(t.Context(), w.writer, writer.By{}, commands.InviteMember{
		TenantRef: commands.TenantRef{TenantID: acme}, ID: pending, Role: events.ViewerRole,
	}); err != nil {
		t.Fatal(err)
	}
	for who, c := range map[string]struct {
		userID, tenantID string
		known            bool
	}{
		"a member":                  {me, acme, true},
		"anybody":                   {stranger, "", true},
		"nobody":                    {uuid.NewString(), "", false},
		"nobody, in a tenant":       {uuid.NewString(), acme, false},
		"no member":                 {stranger, acme, false},
		"a pending member":          {pending, acme, false},
		"one of a tenant of nobody": {me, uuid.NewString(), false},
	} {
		n, err := s.Send(t.Context(),
			notify.Notification{ID: uuid.NewString(), UserID: c.userID, TenantID: c.tenantID, Type: "x", Title: "Hello"})
		switch {
		case c.known && (err != nil || n.Title != "Hello" || n.CreatedAt.IsZero()):
			t.Errorf("%s: %+v, %v", who, n, err)
		case !c.known && (commands.KindOf(err) != commands.NotFound || err.Error() != "there is no such recipient"):
			t.Errorf("%s: %v", who, err)
		}
	}
}

func TestTheServiceNotifiesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := &notify.Notifications{Writer: w.writer, Inbox: w.inbox, Visits: w.directory}
	var users []string
	for range 3 {
		users = append(users, w.signUp(t, uuid.NewString()+"@example.com").UserID)
	}
	acme := w.tenant(t, users[0])
	w.join(t, acme, users[1], events.AdminRole)
	w.join(t, acme, users[2], events.DeveloperRole)
	for range 2 {
		for i, cause := range []string{"first", "second"} {
			if err := s.NotifyAdmins(
				t.Context(), cause, notify.Notification{TenantID: acme, Type: "x", Title: fmt.Sprint(i)},
			); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Notify(
			t.Context(), "first", notify.Notification{UserID: users[2], TenantID: acme, Type: "x", Title: "mine"},
		); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range [][]string{{"1", "0"}, {"1", "0"}, {"mine"}} {
		if diff := cmp.Diff(want, w.titles(t, users[i])); diff != "" {
			t.Errorf("person %d has (-want +got):\n%s", i, diff)
		}
	}
	for _, n := range []notify.Notification{{UserID: uuid.NewString()}, {UserID: uuid.NewString(), TenantID: acme}, {UserID: users[0], TenantID: uuid.NewString()}} {
		if err := s.Notify(t.Context(), "first", n); err != nil {
			t.Errorf("nobody is notified: %v", err)
		}
	}
}

// deletingInbox deletes the tenant right before it adds a notification.
type deletingInbox struct {
	*inbox.Inbox
	deleted func()
}

func (i deletingInbox) Add(ctx context.Context, n notify.Notification) (notify.Notification, error) {
	i.deleted()
	return i.Inbox.Add(ctx, n)
}

func TestATenantThatIsDeletedMeanwhileLeavesNoNotification(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	me := w.signUp(t, uuid.NewString()+"@example.com").UserID
	acme := w.tenant(t, me)
	tenancies := &tenants.Tenancies{Directory: w.directory, Keepings: []tenants.TenantData{w.directory, w.inbox}}
	s := &notify.Notifications{Writer: w.writer, Inbox: deletingInbox{w.inbox, func() {
		do := doing[state.Tenant](w, writer.By{})
		if _, err := tenancies.Delete(
			t.Context(), do, commands.DeleteTenant{TenantRef: commands.TenantRef{TenantID: acme}},
		); err != nil {
			t.Error(err)
		}
	}}}
	_, err := s.Send(t.Context(),
		notify.Notification{ID: uuid.NewString(), UserID: me, TenantID: acme, Type: "x", Title: "late"})
	if commands.KindOf(err) != commands.NotFound {
		t.Errorf("got %v", err)
	}
	if left := w.titles(t, me); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
