package commands

import (
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// InvitationLife is how long an invitation can be accepted after it was last sent.
const InvitationLife = 7 * 24 * time.Hour

// CreateInvitation invites an address to a role on the platform.
type CreateInvitation struct {
	ID     string // new
	Role   events.PlatformRole
	Listed bool // whether the address is in FLAGLEDGER_SUPER_USERS
	Legacy bool // allows inviting a super_user
	Now    time.Time
	// AlreadyPending reports a pending invitation of the address in the read model. It may miss a concurrent one; then
	// either can be accepted.
	AlreadyPending bool
}

func (c CreateInvitation) Stream() string { return events.InvitationStream(c.ID) }

func (c CreateInvitation) Tenant() string { return "" }

func (c CreateInvitation) Decide(i state.Invitation) ([]events.Fact, error) {
	wrong := FieldErrors{}
	known := []events.PlatformRole{events.PlatformViewer, events.PlatformAdmin}
	if c.Legacy {
		known = append(known, events.SuperUser)
	}
	checkPlatformRole(wrong, c.Role, c.Listed, known...)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if c.AlreadyPending || i.ID != "" {
		return nil, Refuse(Conflict, "the address has a pending invitation already")
	}
	return []events.Fact{events.InvitationCreated{ID: c.ID, Role: c.Role, ExpiresAt: expiry(c.Now)}}, nil
}

func expiry(now time.Time) time.Time { return now.UTC().Truncate(time.Millisecond).Add(InvitationLife) }

// InvitationRef identifies an invitation, and holds the time of the command.
type InvitationRef struct {
	ID  string
	Now time.Time
}

func (r InvitationRef) Stream() string { return events.InvitationStream(r.ID) }

func (r InvitationRef) Tenant() string { return "" }

// Admit returns NotFound for an unknown invitation, and Conflict unless its status is one of these.
func (r InvitationRef) Admit(i state.Invitation, states ...string) error {
	if i.ID == "" {
		return Refuse(NotFound, "no invitation has the id %q", r.ID)
	}
	status := i.Status(r.Now)
	for _, s := range states {
		if s == status {
			return nil
		}
	}
	return Refuse(Conflict, "the invitation is %s", status)
}

// ResendInvitation sends a pending or expired invitation again, with a later expiry.
type ResendInvitation struct{ InvitationRef }

func (c ResendInvitation) Decide(i state.Invitation) ([]events.Fact, error) {
	if err := c.Admit(i, "pending", "expired"); err != nil {
		return nil, err
	}
	return []events.Fact{events.InvitationResent{ExpiresAt: expiry(c.Now)}}, nil
}

// RevokeInvitation revokes an invitation that has not been accepted.
type RevokeInvitation struct{ InvitationRef }

func (c RevokeInvitation) Decide(i state.Invitation) ([]events.Fact, error) {
	if err := c.Admit(i, "pending", "expired", "revoked"); err != nil || i.Revoked {
		return nil, err
	}
	return []events.Fact{events.InvitationRevoked{}}, nil
}

// AcceptInvitation records that the invited person accepted a pending invitation.
type AcceptInvitation struct {
	InvitationRef
	UserID string
}

func (c AcceptInvitation) Decide(i state.Invitation) ([]events.Fact, error) {
	if err := c.Admit(i, "pending"); err != nil {
		return nil, err
	}
	return []events.Fact{events.InvitationAccepted{UserID: c.UserID}}, nil
}

// GrantInvited gives a person the role of their accepted invitation. It is idempotent: it does nothing if their role
// is higher, or was changed since by the nodes' clocks.
type GrantInvited struct {
	UserRef
	Role       events.PlatformRole
	Listed     bool // whether the address is in FLAGLEDGER_SUPER_USERS
	AcceptedAt time.Time
}

func (c GrantInvited) Decide(u state.User) ([]events.Fact, error) {
	if u.PlatformRole.Includes(c.Role) || !u.PlatformRoleSince.Before(c.AcceptedAt) {
		return nil, c.admit(u)
	}
	return ChangePlatformRole{UserRef: c.UserRef, Role: c.Role, Listed: c.Listed}.Decide(u)
}
