// Package people signs people in and manages their sessions, memberships, invitations and passwords.
package people

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
)

// People reads what this node's snapshot knows of people.
type People interface {
	// Registered reports whether a person has registered.
	Registered(userID string) bool
	// ShutOut reports whether a person was deactivated or erased.
	ShutOut(userID string) bool
	// SessionEnded reports whether a person's session that began at a time has ended.
	SessionEnded(userID, sessionID string, began time.Time) bool
	PlatformRole(userID string) events.PlatformRole
	// TenantsOf lists a person's tenants: first the first one they created, then the others by when they joined.
	TenantsOf(userID string) []string
	// CreatorOf returns the id of the person who created a tenant, empty if it does not exist.
	CreatorOf(tenantID string) string
	// JoinedAt returns when an added or invited person became a member of a tenant; zero for other members and for
	// non-members.
	JoinedAt(tenantID, userID string) time.Time
	// RoleIn returns a person's role in an existing tenant; empty for a non-member.
	RoleIn(tenantID, userID string) events.Role
}

// SignIn signs people in, and refreshes and ends their sessions.
type SignIn struct {
	Writer   *writer.Writer
	Sessions interface {
		Refresh(ctx context.Context, refreshToken string, mayContinue func(Claims) error) (Session, error)
		Revoke(ctx context.Context, userID, sessionID string) error
	}
	Directory interface {
		// SaveProfile saves a person's name and address, and reports whether the person is new.
		SaveProfile(ctx context.Context, c Claims) (isNew bool, err error)
		Erase(ctx context.Context, userID string) error
		// PendingMemberships lists the latest tenants that invited an address, up to a limit.
		PendingMemberships(ctx context.Context, email string, mustAccept bool, most int) ([]commands.PendingMember, error)
		// Forget deletes the address of a pending member. ForgetUninvited deletes the address of one that the tenant
		// has not invited within a minute.
		Forget(ctx context.Context, id string) error
		ForgetUninvited(ctx context.Context, id string) error
		// AddPending returns the id of the tenant's pending member with an address. If there is none, it saves the
		// address with newID.
		AddPending(ctx context.Context, tenantID, email, newID string, mustAccept bool) (id string, err error)
		DeclinedInvitations
		// PendingMembership returns the id of a tenant's pending member with an address; "" if there is none.
		PendingMembership(ctx context.Context, tenantID, email string) (id string, err error)
		TenantVisits
		// NoteVisit notes in memory that a person visits a tenant now; SaveVisit saves the visit at once. joined is
		// when they joined it.
		NoteVisit(userID, tenantID string, joined time.Time)
		SaveVisit(ctx context.Context, userID, tenantID string, joined time.Time) error
	}
	People     People
	SuperUsers SuperUsers
	Now        func() time.Time
	Log        *slog.Logger
}

// CheckActive refuses a deactivated or erased person.
func CheckActive(p People, userID string) error {
	if p.ShutOut(userID) {
		return commands.Refuse(commands.Forbidden, "the account has been deactivated")
	}
	return nil
}

// CheckSession refuses an ended session, and a deactivated or erased person.
func CheckSession(p People, c Claims) error {
	if err := CheckActive(p, c.UserID); err != nil {
		return err
	}
	if p.SessionEnded(c.UserID, c.SessionID, c.AuthTime) {
		return commands.Refuse(commands.Unauthenticated, "the session has ended")
	}
	return nil
}

// CheckNew refuses the sign-up of a registered person.
func (s *SignIn) CheckNew(c Claims) error {
	if s.People.Registered(c.UserID) {
		return commands.Refuse(commands.Conflict, "the person has signed up already")
	}
	return nil
}

// LetIn registers or updates a person at sign-in, and returns the active tenant. It saves name and address, registers
// the person with a tenant of their own if they have none, makes a listed verified address a super user, and joins
// inviting tenants; failures of the last step are logged and retried at the next sign-in.
//
// If a step fails, the earlier ones stay done and the next sign-in retries: each is idempotent. A deactivated or
// erased person is Forbidden, and nothing is saved.
func (s *SignIn) LetIn(ctx context.Context, by writer.By, c Claims) (activeTenant string, err error) {
	by.Actor = events.Actor{Kind: events.UserActor, ID: c.UserID}
	if err := CheckActive(s.People, c.UserID); err != nil {
		return "", err
	}
	isNew, err := s.Directory.SaveProfile(ctx, c)
	if err != nil {
		return "", err
	}
	if isNew || !s.People.Registered(c.UserID) || len(s.People.TenantsOf(c.UserID)) == 0 {
		if err := s.register(ctx, by, c); err != nil {
			return "", err
		}
	}
	if c.EmailVerified {
		if err := s.grantSuperUser(ctx, by, c); err != nil {
			return "", err
		}
		if err := s.joinTenants(ctx, by, c); err != nil {
			return "", err
		}
	}
	active, err := s.activeTenant(ctx, c)
	if err != nil {
		return "", err
	}
	if active != "" {
		s.Directory.NoteVisit(c.UserID, active, s.People.JoinedAt(active, c.UserID))
	}
	return active, nil
}

// personalTenants is the namespace in which the id of a person's own tenant is derived from theirs, so that two
// concurrent first sign-ins create one tenant.
var personalTenants = uuid.MustParse("5b2d2f1c-5d5b-5d0e-9a57-0b1f4c1f9a3e")

// register registers a person and creates a tenant of their own, unless both exist.
func (s *SignIn) register(ctx context.Context, by writer.By, c Claims) error {
	_, _, err := writer.Do(ctx, s.Writer, by, commands.RegisterUser{ID: c.UserID, Provider: c.Provider})
	if commands.KindOf(err) == commands.Forbidden { // they were erased just now: save nothing
		return cmp.Or(s.Directory.Erase(ctx, c.UserID), err)
	}
	if err != nil {
		return err
	}
	return createPersonalTenant(ctx, s.Writer, by, uuid.NewSHA1(personalTenants, []byte(c.UserID)).String(), c.UserID)
}

// createPersonalTenant creates a person's own tenant with an id derived from theirs, unless it exists.
func createPersonalTenant(ctx context.Context, w *writer.Writer, by writer.By, id, userID string) error {
	_, _, err := writer.Do(ctx, w, by,
		commands.CreateTenant{ID: id, Name: "Personal workspace", Creator: userID,
			Environments: commands.FirstEnvironments()})
	if commands.KindOf(err) == commands.Conflict {
		return nil
	}
	return err
}

// grantSuperUser makes a person with a listed verified address a super user.
func (s *SignIn) grantSuperUser(ctx context.Context, by writer.By, c Claims) error {
	if !s.SuperUsers.Has(c.Email) || s.People.PlatformRole(c.UserID) == events.SuperUser {
		return nil
	}
	_, _, err := writer.Do(ctx, s.Writer, by,
		commands.ChangePlatformRole{UserRef: commands.UserRef{UserID: c.UserID}, Role: events.SuperUser,
			Listed: true})
	return err
}

// activeTenant returns the last visited tenant in which the person is still a member, or else their canonical one. A
// tenant to which another person added them counts only once they have confirmed it.
func (s *SignIn) activeTenant(ctx context.Context, c Claims) (string, error) {
	visits, err := s.Directory.Visits(ctx, c.UserID)
	if err != nil {
		return "", err
	}
	for _, visit := range visits {
		if s.People.RoleIn(visit.TenantID, c.UserID) != "" &&
			!visit.At.Before(s.People.JoinedAt(visit.TenantID, c.UserID)) {
			return visit.TenantID, nil
		}
	}
	confirmed := func(id string, joined time.Time) bool { return visitedSince(visits, id, joined) }
	id, _ := canonicalTenant(s.People, c.UserID, s.People.TenantsOf(c.UserID), confirmed)
	return id, nil
}
