package commands

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
)

// People is what use cases ask of the snapshot: what this node has heard of people so far.
type People interface {
	// Registered reports whether a person has begun to use the service.
	Registered(userID string) bool
	// ShutOut reports whether a person has been deactivated or erased.
	ShutOut(userID string) bool
	// SessionEnded reports whether a session of a person has ended that began at an instant.
	SessionEnded(userID, sessionID string, began time.Time) bool
	PlatformRole(userID string) events.PlatformRole
	// TenantsOf lists the tenants that a person is a member of: first the first that they created, then the others by
	// when they joined.
	TenantsOf(userID string) []string
	// CreatorOf returns the id of the person who created a tenant, empty if it does not exist.
	CreatorOf(tenantID string) string
	// JoinedAt returns when a person whom another one added or invited became a member of a tenant. It is zero for
	// others, and for no member.
	JoinedAt(tenantID, userID string) time.Time
	// RoleIn tells what a person may do in a tenant that exists, empty for one who is no member.
	RoleIn(tenantID, userID string) events.Role
}

// SignIn lets people begin to use the service, and go on with their sessions and end them.
type SignIn struct {
	Writer   *Writer
	Sessions interface {
		Refresh(ctx context.Context, refreshToken string, mayContinue func(Claims) error) (Session, error)
		Revoke(ctx context.Context, userID, sessionID string) error
	}
	Directory interface {
		// SaveProfile notes a person's name and address, and reports whether the person was not known before.
		SaveProfile(ctx context.Context, c Claims) (isNew bool, err error)
		Erase(ctx context.Context, userID string) error
		// PendingMemberships lists the last tenants that have invited an address, so many at most.
		PendingMemberships(ctx context.Context, email string, mustAccept bool, most int) ([]PendingMember, error)
		// Forget drops the address of a pending member, ForgetUninvited that of one whom the tenant has not invited within a
		// minute.
		Forget(ctx context.Context, id string) error
		ForgetUninvited(ctx context.Context, id string) error
		// AddPending finds the tenant's pending member with an address, or saves the address for one with the id newID.
		AddPending(ctx context.Context, tenantID, email, newID string, mustAccept bool) (id string, err error)
		DeclinedInvitations
		// PendingMembership returns the id of a tenant's pending member with an address, empty without one.
		PendingMembership(ctx context.Context, tenantID, email string) (id string, err error)
		TenantUses
		// NoteUse notes that a person uses a tenant now, which they joined at a time. It is written down later, by
		// RecordUse at once.
		NoteUse(userID, tenantID string, joined time.Time)
		RecordUse(ctx context.Context, userID, tenantID string, joined time.Time) error
	}
	People     People
	SuperUsers SuperUsers
	Now        func() time.Time
	Log        *slog.Logger
}

// CheckActive refuses whoever has been deactivated or erased.
func CheckActive(p People, userID string) error {
	if p.ShutOut(userID) {
		return refuse(Forbidden, "the account has been deactivated")
	}
	return nil
}

// CheckSession refuses a session that has ended, and whoever has been deactivated or erased.
func CheckSession(p People, c Claims) error {
	if err := CheckActive(p, c.UserID); err != nil {
		return err
	}
	if p.SessionEnded(c.UserID, c.SessionID, c.AuthTime) {
		return refuse(Unauthenticated, "the session has ended")
	}
	return nil
}

// CheckNew refuses the sign-up of somebody who has begun to use the service already.
func (s *SignIn) CheckNew(c Claims) error {
	if s.People.Registered(c.UserID) {
		return refuse(Conflict, "the person has signed up already")
	}
	return nil
}

// LetIn lets a person begin to use the service, or go on, and tells the active tenant, which is used with it. In this
// order:
//
// 1. the directory notes the name and the address; 2. the person is registered, and gets a tenant of their own where
// they are a member of none; 3. a verified address on the list makes a super user; 4. a verified address joins the
// tenants that have invited it. What fails here is logged and tried again at the next sign-in.
//
// Where a step fails, those before it stay done, and the person signs in again: each step may be repeated. Whoever has
// been shut out is Forbidden, and nothing of them is noted.
func (s *SignIn) LetIn(ctx context.Context, by By, c Claims) (activeTenant string, err error) {
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
		s.Directory.NoteUse(c.UserID, active, s.People.JoinedAt(active, c.UserID))
	}
	return active, nil
}

// personalTenants is the namespace in which the id of a person's own tenant is derived from the person's, so that two
// first sign-ins at once make one tenant.
var personalTenants = uuid.MustParse("5b2d2f1c-5d5b-5d0e-9a57-0b1f4c1f9a3e")

// register registers a person and gives them a tenant of their own, unless both are there.
func (s *SignIn) register(ctx context.Context, by By, c Claims) error {
	_, _, err := Do(ctx, s.Writer, by, RegisterUser{ID: c.UserID, Provider: c.Provider})
	if KindOf(err) == Forbidden { // they were erased just now: nothing is to be known of them
		return cmp.Or(s.Directory.Erase(ctx, c.UserID), err)
	}
	if err != nil {
		return err
	}
	return createPersonalTenant(ctx, s.Writer, by, uuid.NewSHA1(personalTenants, []byte(c.UserID)).String(), c.UserID)
}

// createPersonalTenant gives a person a tenant of their own with an id that is derived from theirs, unless it was made
// before.
func createPersonalTenant(ctx context.Context, w *Writer, by By, id, userID string) error {
	_, _, err := Do(ctx, w, by,
		CreateTenant{ID: id, Name: "Personal workspace", Creator: userID, Environments: FirstEnvironments()})
	if KindOf(err) == Conflict {
		return nil
	}
	return err
}

// grantSuperUser makes a person a super user whose verified address is on the list.
func (s *SignIn) grantSuperUser(ctx context.Context, by By, c Claims) error {
	if !s.SuperUsers.Has(c.Email) || s.People.PlatformRole(c.UserID) == events.SuperUser {
		return nil
	}
	_, _, err := Do(ctx, s.Writer, by, ChangePlatformRole{UserRef: UserRef{c.UserID}, Role: events.SuperUser,
		Listed: true})
	return err
}

// activeTenant returns the tenant that a person used last of those that they are still a member of, and else their
// canonical one. A tenant that another person added them to is active only once they have confirmed it.
func (s *SignIn) activeTenant(ctx context.Context, c Claims) (string, error) {
	used, err := s.Directory.UsedTenants(ctx, c.UserID)
	if err != nil {
		return "", err
	}
	for _, use := range used {
		if s.People.RoleIn(use.TenantID, c.UserID) != "" &&
			!use.At.Before(s.People.JoinedAt(use.TenantID, c.UserID)) {
			return use.TenantID, nil
		}
	}
	confirmed := func(id string, joined time.Time) bool { return usedSince(used, id, joined) }
	id, _ := canonicalTenant(s.People, c.UserID, s.People.TenantsOf(c.UserID), confirmed)
	return id, nil
}
