package commands_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/identity/local"
	"flagledger/commands/keep/directory"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// knownPeople is a snapshot with the test's people.
type knownPeople struct {
	registered, shutOut bool
	role                events.PlatformRole
	tenants             []string
	creator             string
	joined              map[string]time.Time // by tenant, of people added by another
}

func (p *knownPeople) Registered(string) bool                      { return p.registered }
func (p *knownPeople) ShutOut(string) bool                         { return p.shutOut }
func (p *knownPeople) SessionEnded(string, string, time.Time) bool { return false }
func (p *knownPeople) PlatformRole(string) events.PlatformRole     { return p.role }
func (p *knownPeople) TenantsOf(string) []string                   { return p.tenants }
func (p *knownPeople) CreatorOf(string) string                     { return p.creator }
func (p *knownPeople) JoinedAt(tenantID, _ string) time.Time       { return p.joined[tenantID] }
func (p *knownPeople) RoleIn(tenantID, _ string) (role events.Role) {
	if slices.Contains(p.tenants, tenantID) {
		return events.AdminRole
	}
	return ""
}

// steppingDirectory is a directory with calls as steps.
type steppingDirectory struct {
	*directory.Directory
	*steps
}

func (d steppingDirectory) SaveProfile(ctx context.Context, c people.Claims) (bool, error) {
	if err := d.take("save profile"); err != nil {
		return false, err
	}
	return d.Directory.SaveProfile(ctx, c)
}

func (d steppingDirectory) PendingMemberships(
	ctx context.Context, email string, mustAccept bool, most int,
) ([]commands.PendingMember, error) {
	if err := d.take("pending memberships"); err != nil {
		return nil, err
	}
	return d.Directory.PendingMemberships(ctx, email, mustAccept, most)
}

func (d steppingDirectory) Forget(ctx context.Context, id string) error {
	if err := d.take("forget"); err != nil {
		return err
	}
	return d.Directory.Forget(ctx, id)
}

func (d steppingDirectory) ForgetDeclined(ctx context.Context, tenantID, userID string) error {
	if err := d.take("forget declined"); err != nil {
		return err
	}
	return d.Directory.ForgetDeclined(ctx, tenantID, userID)
}

func (d steppingDirectory) Visits(ctx context.Context, userID string) ([]people.TenantVisit, error) {
	if err := d.take("visits"); err != nil {
		return nil, err
	}
	return d.Directory.Visits(ctx, userID)
}

// steppingSessions is an identity provider that ends sessions in a step.
type steppingSessions struct {
	*local.Provider
	*steps
}

func (s steppingSessions) Revoke(ctx context.Context, userID, sessionID string) error {
	if err := s.take("revoke"); err != nil {
		return err
	}
	return s.Provider.Revoke(ctx, userID, sessionID)
}

func (w *world) signIn(heard *knownPeople, superUsers ...string) *people.SignIn {
	return &people.SignIn{
		Writer:     w.writer,
		Sessions:   steppingSessions{w.identity, w.steps},
		Directory:  steppingDirectory{w.directory, w.steps},
		People:     heard,
		SuperUsers: people.NewSuperUsers(superUsers),
		Now:        time.Now,
		Log:        slog.New(slog.DiscardHandler),
	}
}

// refreshes reports whether the identity provider itself accepts a refresh token.
func (w *world) refreshes(t *testing.T, token string) bool {
	t.Helper()
	_, err := w.identity.Refresh(t.Context(), token, func(people.Claims) error { return nil })
	return err == nil
}

// If a refresh token is used twice, one use may be a thief's: the session ends everywhere.
func TestARefreshTokenThatIsUsedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heard := &knownPeople{registered: true, tenants: []string{"t"}}
	signIn := w.signIn(heard)
	for failing, steps0 := range [][]string{{"append user.session_ended", "revoke"}, {"append user.session_ended"}, {"append user.session_ended", "revoke"}} {
		up := w.signUp(t, uuid.NewString()+"@example.com")
		next, _, err := signIn.Refresh(t.Context(), writer.By{}, up.RefreshToken)
		if err != nil {
			t.Fatal(err)
		}
		*w.steps = steps{failing: failing}
		_, _, err = signIn.Refresh(t.Context(), writer.By{}, up.RefreshToken)
		if diff := cmp.Diff(steps0, w.taken); diff != "" {
			t.Errorf("the steps (-want +got):\n%s", diff)
		}
		if failing > 0 {
			if !errors.Is(err, errStep) {
				t.Errorf("got %v", err)
			}
			_, _, err = signIn.Refresh(t.Context(), writer.By{}, up.RefreshToken) // the next use retries
		}
		if commands.KindOf(err) != commands.Unauthenticated {
			t.Errorf("got %v", err)
		}
		if w.refreshes(t, next.RefreshToken) {
			t.Error("the identity provider goes on with the session")
		}
		if diff := cmp.Diff([]string{"user.session_ended"}, w.facts(t, events.UserStream(up.UserID))); diff != "" {
			t.Errorf("the facts (-want +got):\n%s", diff)
		}
	}
}

func TestLoggingOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signIn := w.signIn(&knownPeople{})
	logOut := func(s people.Session) error {
		_, err := signIn.LogOut(
			t.Context(),
			func(ctx context.Context, cmd commands.Command[state.User]) (state.User, writer.Done, error) {
				return writer.Do(ctx, w.writer, writer.By{}, cmd)
			},
			s.Claims,
		)
		return err
	}
	for failing := range 3 {
		up := w.signUp(t, uuid.NewString()+"@example.com")
		*w.steps = steps{failing: failing}
		if err := logOut(up); errors.Is(err, errStep) != (failing > 0) {
			t.Errorf("got %v", err)
		}
		if failing > 0 {
			if err := logOut(up); err != nil {
				t.Error(err)
			}
		}
		if w.refreshes(t, up.RefreshToken) {
			t.Error("the session goes on")
		}
		if diff := cmp.Diff([]string{"user.session_ended"}, w.facts(t, events.UserStream(up.UserID))); diff != "" {
			t.Errorf("the facts (-want +got):\n%s", diff)
		}
	}
}
