package people

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/eventstest"
)

// accepting is a person who was invited to be a platform admin and accepts.
type accepting struct {
	t     *testing.T
	store *eventstest.Memory
	w     *writer.Writer
	once  bool // calls share an Idempotency-Key

	invitations []string
}

func newAccepting(t *testing.T, once bool) *accepting {
	store := eventstest.NewMemory()
	w := writer.NewWriter(store, writer.NoWait, writer.NoQuotas{}, time.Now)
	a := &accepting{t: t, store: store, w: w, once: once, invitations: []string{"i"}}
	a.do("root", events.UserStream("u"), events.UserRegistered{ID: "u"})
	a.do("root", events.InvitationStream("i"),
		events.InvitationCreated{ID: "i", Role: events.PlatformAdmin, ExpiresAt: time.Now().Add(time.Hour)})
	return a
}

// do appends facts.
func (a *accepting) do(who, stream string, facts ...events.Fact) {
	a.t.Helper()
	for _, fact := range facts {
		e := events.Event{
			ID:       uuid.New(),
			Fact:     fact,
			Metadata: events.Metadata{Time: time.Now().UTC(), Actor: events.Actor{ID: who}},
		}
		if _, err := a.store.Append(
			a.t.Context(), stream, events.Revision(len(a.store.Streams[stream])), []events.Event{e},
		); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *accepting) accept() error {
	by := writer.By{Actor: events.Actor{ID: "u"}}
	if a.once {
		by.Once = writer.NewOnce([]byte("key"), time.UnixMilli(0))
	}
	accepted, _, err := accept(a.t.Context(), a.w, by, invitationTaker{UserID: "u", Invitations: a.invitations}, time.Now())
	if err == nil && (accepted.ID != "i" || !accepted.Accepted) {
		a.t.Errorf("accepted %+v", accepted)
	}
	return err
}

func (a *accepting) role() events.PlatformRole {
	user, err := writer.ReadUser(a.t.Context(), a.w, "u")
	if err != nil {
		a.t.Fatal(err)
	}
	return user.PlatformRole
}

func TestAcceptingAnInvitation(t *testing.T) {
	for name, once := range map[string]bool{"with a key": true, "without": false} {
		for appends := range 3 { // facts before the node dies
			t.Run(name, func(t *testing.T) {
				a := newAccepting(t, once)
				a.store.AppendsLeft = appends
				if err := a.accept(); errors.Is(err, eventstest.ErrDied) != (appends < 2) {
					t.Fatal(err)
				}
				a.store.AppendsLeft = 1_000
				if appends == 0 {
					if a.role() != "" {
						t.Error("there is a role without an accepted invitation")
					}
				}
				if err := a.accept(); err != nil && (once || appends < 2 || commands.KindOf(err) != commands.NotFound) {
					t.Errorf("after %d appends it is answered: %v", appends, err)
				}
				if a.role() != events.PlatformAdmin {
					t.Errorf("the role is %q", a.role())
				}
			})
		}
	}
	for appends := range 2 {
		t.Run("an invitation that can be revoked after the node died gives no role", func(t *testing.T) {
			a := newAccepting(t, false)
			a.store.AppendsLeft = appends
			if err := a.accept(); !errors.Is(err, eventstest.ErrDied) {
				t.Fatal(err)
			}
			a.store.AppendsLeft = 1_000
			revoke := commands.RevokeInvitation{InvitationRef: commands.InvitationRef{ID: "i", Now: time.Now()}}
			_, _, err := writer.Do(t.Context(), a.w, writer.By{}, revoke)
			revoked := err == nil
			err = a.accept()
			if revoked != (commands.KindOf(err) == commands.NotFound) || revoked != (a.role() == "") {
				t.Errorf("after %d appends: revoked %v, %v, %q", appends, revoked, err, a.role())
			}
		})
	}
	t.Run("a role that was taken away since stays away", func(t *testing.T) {
		a := newAccepting(t, false)
		if err := a.accept(); err != nil {
			t.Fatal(err)
		}
		a.do("root", events.UserStream("u"), events.PlatformRoleChanged{From: events.PlatformAdmin})
		if err := a.accept(); commands.KindOf(err) != commands.NotFound || a.role() != "" {
			t.Errorf("%v, %q", err, a.role())
		}
	})
	t.Run("a request that is made again finds its own invitation", func(t *testing.T) {
		a := newAccepting(t, true)
		if err := a.accept(); err != nil {
			t.Fatal(err)
		}
		a.do("root", events.InvitationStream("j"),
			events.InvitationCreated{ID: "j", Role: events.PlatformViewer, ExpiresAt: time.Now().Add(time.Hour)})
		a.do("u", events.InvitationStream("j"), events.InvitationAccepted{UserID: "u"})
		a.invitations = []string{"j", "i"}
		if err := a.accept(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a higher role stays, and is not followed by the lower one", func(t *testing.T) {
		a := newAccepting(t, false)
		a.do("root", events.UserStream("u"), events.PlatformRoleChanged{To: events.SuperUser})
		if err := a.accept(); err != nil || a.role() != events.SuperUser {
			t.Errorf("%v, %q", err, a.role())
		}
		a.do("root", events.UserStream("u"), events.PlatformRoleChanged{From: events.SuperUser})
		if err := a.accept(); commands.KindOf(err) != commands.NotFound || a.role() != "" {
			t.Errorf("%v, %q", err, a.role())
		}
	})
	t.Run("what another accepted gives no role", func(t *testing.T) {
		a := newAccepting(t, false)
		a.do("x", events.InvitationStream("i"), events.InvitationAccepted{UserID: "x"})
		if err := a.accept(); commands.KindOf(err) != commands.NotFound || a.role() != "" {
			t.Errorf("%v, %q", err, a.role())
		}
	})
	t.Run("it is not accepted by somebody who cannot have the role", func(t *testing.T) {
		a := newAccepting(t, false)
		a.do("u", events.UserStream("u"), events.UserErased{})
		if err := a.accept(); err == nil || len(a.store.Streams[events.InvitationStream("i")]) != 1 {
			t.Error(err)
		}
	})
}
