package commands

import (
	"slices"

	"flagledger/events"
	"flagledger/events/state"
)

// The members of a tenant are part of the tenant's stream.

const maxMembers = 10_000

func checkRole(wrong FieldErrors, role events.Role) {
	wrong.Check(role != "", "role", "is required")
	known := []events.Role{events.AdminRole, events.DeveloperRole, events.ViewerRole}
	wrong.Check(slices.Contains(known, role), "role", "must be one of admin, developer, viewer")
}

// InviteMember makes a pending member of a tenant, who joins it when they next sign in.
type InviteMember struct {
	TenantRef
	ID     string // of the pending member
	Role   events.Role
	Person string // the id of the person with the address; empty without one
	// Declined reports that the person has declined an invitation of the tenant.
	Declined bool
	// MustAccept invites them: they join once they accept. Without it, a person who left or declined is refused.
	MustAccept bool
}

func (c InviteMember) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	checkRole(wrong, c.Role)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	_, member := t.Members[c.Person]
	if _, pending := t.Members[c.ID]; member || pending {
		return nil, Refuse(Conflict, "a member with this address already exists")
	}
	if (c.Declined || t.Leavers[c.Person]) && !c.MustAccept {
		return nil, &Error{
			Kind: Conflict, Problem: MemberLeft,
			Detail: "the person with this address has left the tenant or declined its invitation; " +
				"send invitation: true to invite them, and they join if they accept",
		}
	}
	if len(t.Members) >= maxMembers {
		return nil, Refuse(Conflict, "a tenant has at most %d members", maxMembers)
	}
	return []events.Fact{events.MemberInvited{ID: c.ID, Role: c.Role, MustAccept: c.MustAccept}}, nil
}

// JoinTenant makes a pending member a member after the person signed in with the invited address or accepted. It does
// nothing if the invitation was withdrawn, or must be accepted and was not.
type JoinTenant struct {
	TenantRef
	ID       string // of the pending member
	UserID   string
	Accepted bool
	// Declined reports that the person has declined an invitation of the tenant.
	Declined bool
}

func (c JoinTenant) Decide(t state.Tenant) ([]events.Fact, error) {
	pending, invited := t.Members[c.ID]
	if !t.Exists || !invited || !pending.Pending {
		return nil, nil
	}
	if !c.Accepted && (pending.MustAccept || c.Declined || t.Leavers[c.UserID]) {
		return nil, nil
	}
	return []events.Fact{events.MemberJoined{ID: c.ID, UserID: c.UserID, Role: pending.Role}}, nil
}

// ChangeRole changes the role of a member. The last admin who can sign in must stay an admin, and a demo person cannot
// become one.
type ChangeRole struct {
	TenantRef
	UserID string
	Role   events.Role
	// ShutOut are the tenant's admins who cannot sign in because they were deactivated or erased. The snapshot that
	// lists them may miss a concurrent change.
	ShutOut []string
}

func (c ChangeRole) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	checkRole(wrong, c.Role)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	m, err := memberOf(&t, c.UserID)
	switch {
	case err != nil:
		return nil, err
	case m.Role == c.Role:
		return nil, nil
	case c.Role == events.AdminRole && isDemoPerson(c.TenantID, c.UserID):
		return nil, Refuse(Conflict, "a demo person cannot be an admin: they cannot sign in")
	case lastAdmin(&t, c.UserID, c.ShutOut):
		return nil, Refuse(Conflict, "the last admin of a tenant cannot be demoted")
	}
	return []events.Fact{events.MemberRoleChanged{UserID: c.UserID, From: m.Role, To: c.Role}}, nil
}

// RemoveMember removes a member, pending or not. The last admin who can sign in must stay.
type RemoveMember struct {
	TenantRef
	UserID string
	// ShutOut has the same meaning as in ChangeRole.
	ShutOut []string
}

func (c RemoveMember) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	if _, err := memberOf(&t, c.UserID); err != nil {
		return nil, err
	}
	if lastAdmin(&t, c.UserID, c.ShutOut) {
		return nil, Refuse(Conflict, "the last admin of a tenant cannot be removed")
	}
	return []events.Fact{events.MemberRemoved{UserID: c.UserID}}, nil
}

// LeaveTenant removes the caller from a tenant, even from an ended sandbox. It returns Conflict for the last admin who
// can sign in.
type LeaveTenant struct{ RemoveMember }

// DeclineInvitation removes a pending member, whose id is UserID, for the invited person. The fact has the invitation
// as its actor, because the tenant does not know the person.
type DeclineInvitation struct{ RemoveMember }

func (c DeclineInvitation) Actor() events.Actor {
	return events.Actor{Kind: events.InvitedActor, ID: c.UserID}
}

// WasMember reports whether a person is a former member or former pending member.
func WasMember(t *state.Tenant, id string) bool {
	_, member := t.Members[id]
	return !member && t.FormerMembers[id]
}

func memberOf(t *state.Tenant, userID string) (state.Member, error) {
	m, ok := t.Members[userID]
	if !ok {
		return m, Refuse(NotFound, "the tenant has no member %q", userID)
	}
	return m, nil
}

// lastAdmin reports whether a member is an admin and no other admin can sign in.
func lastAdmin(t *state.Tenant, userID string, shutOut []string) bool {
	admins := Admins(t)
	another := func(id string) bool { return id != userID && !slices.Contains(shutOut, id) }
	return slices.Contains(admins, userID) && !slices.ContainsFunc(admins, another)
}

// Admins returns the ids of the admins who have joined, except demo people.
func Admins(t *state.Tenant) []string {
	var ids []string
	for id, m := range t.Members {
		if m.Role == events.AdminRole && !m.Pending && (!t.Sandbox || !isDemoPerson(t.ID, id)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// PendingMember identifies a pending member of a tenant. The directory finds them by address.
type PendingMember struct {
	TenantID string
	ID       string
}
