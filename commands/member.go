package commands

import (
	"slices"

	"flagledger/events"
)

// Members of a tenant are part of the tenant's stream.

const maxMembers = 10_000

func checkRole(wrong fields, role events.Role) {
	wrong.check(role != "", "role", "is required")
	known := []events.Role{events.AdminRole, events.DeveloperRole, events.ViewerRole}
	wrong.check(slices.Contains(known, role), "role", "must be one of admin, developer, viewer")
}

// AddMember makes a person a member of a tenant, or somebody who has no account yet a pending one.
type AddMember struct {
	TenantRef
	UserID  string // of the person, or of the pending member
	Pending bool
	Role    events.Role
	Awaited string // the id under which the person has been invited before, empty where they have not
}

func (c AddMember) decide(t Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := fields{}
	checkRole(wrong, c.Role)
	if err := wrong.err(); err != nil {
		return nil, err
	}
	_, member := t.Members[c.UserID]
	if _, awaited := t.Members[c.Awaited]; member || awaited {
		return nil, refuse(Conflict, "there is a member with this address already")
	}
	if len(t.Members) >= maxMembers {
		return nil, refuse(Conflict, "a tenant has at most %d members", maxMembers)
	}
	if c.Pending {
		return []events.Fact{events.MemberInvited{ID: c.UserID, Role: c.Role}}, nil
	}
	return []events.Fact{events.MemberAdded{UserID: c.UserID, Role: c.Role}}, nil
}

// JoinTenant makes a pending member the person who signed in with the address that was invited. Where the invitation was taken back there is
// nothing to do.
type JoinTenant struct {
	TenantRef
	ID     string // of the pending member
	UserID string
}

func (c JoinTenant) decide(t Tenant) ([]events.Fact, error) {
	pending, invited := t.Members[c.ID]
	if !t.Exists || !invited || !pending.Pending {
		return nil, nil
	}
	return []events.Fact{events.MemberJoined{ID: c.ID, UserID: c.UserID, Role: pending.Role}}, nil
}

// ChangeRole gives a member another role. The last admin who can sign in stays one.
type ChangeRole struct {
	TenantRef
	UserID string
	Role   events.Role
	// ShutOut are those of the tenant's admins who have been deactivated or erased, and so cannot sign in. The caller looks them up in the snapshot,
	// which may miss one who is shut out, or becomes an admin, at the same moment. Nothing keeps the last admin from being shut out later: the tenant
	// then has none who can sign in until they are let in again.
	ShutOut []string
}

func (c ChangeRole) decide(t Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := fields{}
	checkRole(wrong, c.Role)
	if err := wrong.err(); err != nil {
		return nil, err
	}
	m, err := t.member(c.UserID)
	switch {
	case err != nil:
		return nil, err
	case m.Role == c.Role:
		return nil, nil
	case t.lastAdmin(c.UserID, c.ShutOut):
		return nil, refuse(Conflict, "the last admin of a tenant cannot be demoted")
	}
	return []events.Fact{events.MemberRoleChanged{UserID: c.UserID, From: m.Role, To: c.Role}}, nil
}

// RemoveMember ends a membership, pending or not. The last admin who can sign in stays.
type RemoveMember struct {
	TenantRef
	UserID string
	// ShutOut is as in ChangeRole.
	ShutOut []string
}

func (c RemoveMember) decide(t Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	if _, err := t.member(c.UserID); err != nil {
		return nil, err
	}
	if t.lastAdmin(c.UserID, c.ShutOut) {
		return nil, refuse(Conflict, "the last admin of a tenant cannot be removed")
	}
	return []events.Fact{events.MemberRemoved{UserID: c.UserID}}, nil
}

func (t *Tenant) member(userID string) (Member, error) {
	m, ok := t.Members[userID]
	if !ok {
		return m, refuse(NotFound, "the tenant has no member %q", userID)
	}
	return m, nil
}

// lastAdmin reports whether a member is an admin beside whom there is none who can sign in.
func (t *Tenant) lastAdmin(userID string, shutOut []string) bool {
	if m := t.Members[userID]; m.Role != events.AdminRole || m.Pending {
		return false
	}
	for id, m := range t.Members {
		if id != userID && m.Role == events.AdminRole && !m.Pending && !slices.Contains(shutOut, id) {
			return false
		}
	}
	return true
}

// PendingMember is a pending member of a tenant, as the directory knows them by their address.
type PendingMember struct {
	TenantID string
	ID       string
}
