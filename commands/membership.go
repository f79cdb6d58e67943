package commands

import (
	"context"
	"slices"
)

// TenantUses tells which tenants people have used. The directory implements it.
type TenantUses interface {
	// UsedTenants lists the tenants that a person has used, the last one first.
	UsedTenants(ctx context.Context, userID string) ([]string, error)
}

// DeclinedInvitations are kept beside the facts, which do not tell who declined. The directory implements it.
type DeclinedInvitations interface {
	// NoteDeclined notes that a person has declined an invitation of a tenant, and ForgetDeclined forgets it. Both may be repeated.
	NoteDeclined(ctx context.Context, tenantID, userID string) error
	ForgetDeclined(ctx context.Context, tenantID, userID string) error
	// HasDeclined reports whether a person has declined an invitation of a tenant.
	HasDeclined(ctx context.Context, tenantID, userID string) (bool, error)
}

// Answered reports whether a member has opened a tenant, or said that they stay, since another person added them to it.
func Answered(ctx context.Context, uses TenantUses, tenant Tenant, userID string) (bool, error) {
	if !tenant.Members[userID].Joined {
		return true, nil
	}
	used, err := uses.UsedTenants(ctx, userID)
	return slices.Contains(used, tenant.ID), err
}

// AcceptMembership says that a person stays in a tenant that they were added to, or accepts an invitation to it. It returns NotFound without
// either.
func (s *SignIn) AcceptMembership(ctx context.Context, do Doer[Tenant], c Claims, tenantID string) (done Done, err error) {
	tenant, err := ReadTenant(ctx, s.Writer, tenantID)
	if err != nil {
		return done, err
	}
	if _, member := tenant.Members[c.UserID]; !tenant.Exists || !member {
		if done, err = s.acceptInvitation(ctx, do, c, tenantID); err != nil {
			return done, err
		}
	}
	s.Directory.NoteUse(c.UserID, tenantID)
	_, err = s.Directory.UsedTenants(ctx, c.UserID) // writes the use down
	return done, err
}

func (s *SignIn) acceptInvitation(ctx context.Context, do Doer[Tenant], c Claims, tenantID string) (Done, error) {
	id, err := s.invitation(ctx, c, tenantID)
	if err != nil {
		return Done{}, err
	}
	tenant, done, err := do(ctx, JoinTenant{TenantRef: TenantRef{tenantID}, ID: id, UserID: c.UserID, Accepted: true})
	if err != nil {
		return done, err
	}
	if _, member := tenant.Members[c.UserID]; !tenant.Exists || !member {
		return done, notInvited()
	}
	if err := s.Directory.ForgetDeclined(ctx, tenantID, c.UserID); err != nil {
		return done, err
	}
	return done, s.Directory.Forget(ctx, id)
}

// invitation finds the pending member that a tenant has for a person's verified address.
func (s *SignIn) invitation(ctx context.Context, c Claims, tenantID string) (id string, err error) {
	if c.EmailVerified {
		id, err = s.Directory.PendingMembership(ctx, tenantID, c.Email)
	}
	if err == nil && id == "" {
		err = notInvited()
	}
	return id, err
}

func notInvited() error {
	return refuse(NotFound, "the caller is no member of the tenant, and it has not invited their verified address")
}

// DeclineMembership takes a person from a tenant that they were added to, or declines an invitation to it. It returns NotFound without either.
func (s *SignIn) DeclineMembership(ctx context.Context, do Doer[Tenant], c Claims, leave LeaveTenant) (Done, error) {
	tenant, err := ReadTenant(ctx, s.Writer, leave.TenantID)
	if err != nil {
		return Done{}, err
	}
	if _, member := tenant.Members[c.UserID]; !tenant.Exists || !member {
		return s.declineInvitation(ctx, do, c, leave.TenantRef)
	}
	leave.UserID = c.UserID
	_, done, err := do(ctx, leave)
	return done, err
}

// declineInvitation notes who declines before the fact, which does not tell it: without the fact, the note only makes the person accept.
func (s *SignIn) declineInvitation(ctx context.Context, do Doer[Tenant], c Claims, of TenantRef) (Done, error) {
	id, err := s.invitation(ctx, c, of.TenantID)
	if err != nil {
		return Done{}, err
	}
	if err := s.Directory.NoteDeclined(ctx, of.TenantID, c.UserID); err != nil {
		return Done{}, err
	}
	_, done, err := do(ctx, DeclineInvitation{RemoveMember{TenantRef: of, UserID: id}})
	if err != nil {
		return done, err
	}
	return done, s.Directory.Forget(ctx, id)
}

// Addition says who added a person to a tenant that they have not opened since, or invited them to one.
type Addition struct {
	TenantID   string
	TenantName string
	Role       string
	By         string // the id of the person who did it; empty if it was nobody
	Invitation bool   // it must be accepted; otherwise the person is a member
}

// Additions lists what a person has not answered, up to maxJoins of each kind. What cannot be read in joinTime is left out and logged:
// it keeps nobody from signing in.
func (s *SignIn) Additions(ctx context.Context, c Claims) []Addition {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	list, err := s.unanswered(ctx, c.UserID)
	if err == nil && c.EmailVerified {
		var invitations []Addition
		invitations, err = s.invitations(ctx, c)
		list = append(list, invitations...)
	}
	if err != nil {
		s.Log.Warn("a person is not asked about the tenants that they were added to", "user", c.UserID, "err", err)
	}
	return list
}

// unanswered lists the tenants that a person was added to and has not opened.
func (s *SignIn) unanswered(ctx context.Context, userID string) (list []Addition, err error) {
	used, err := s.Directory.UsedTenants(ctx, userID)
	if err != nil {
		return nil, err
	}
	for _, id := range s.People.TenantsOf(userID) {
		if slices.Contains(used, id) || s.People.CreatorOf(id) == userID {
			continue
		}
		tenant, err := ReadTenant(ctx, s.Writer, id)
		if err != nil {
			return list, err
		}
		if m := tenant.Members[userID]; tenant.Exists && m.Joined {
			list = append(list, Addition{TenantID: id, TenantName: tenant.Name, Role: string(m.Role), By: m.InvitedBy})
		}
		if len(list) == maxJoins {
			break
		}
	}
	return list, nil
}

// invitations lists the invitations that a person may accept.
func (s *SignIn) invitations(ctx context.Context, c Claims) (list []Addition, err error) {
	pending, err := s.Directory.PendingMemberships(ctx, c.Email, true, maxJoins)
	if err != nil {
		return nil, err
	}
	for _, p := range pending {
		tenant, err := ReadTenant(ctx, s.Writer, p.TenantID)
		if err != nil {
			return list, err
		}
		if m, invited := tenant.Members[p.ID]; tenant.Exists && invited {
			list = append(list, Addition{TenantID: p.TenantID, TenantName: tenant.Name, Role: string(m.Role), By: m.InvitedBy, Invitation: true})
		}
	}
	return list, nil
}
