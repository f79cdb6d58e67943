package people

import (
	"cmp"
	"context"
	"slices"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events/state"
)

// A person whom another one added to a tenant confirms the membership by opening the tenant, or by accepting. A visit
// before the membership does not count, so a person who is added again must confirm again.

// TenantVisit is a person's last visit to a tenant.
type TenantVisit struct {
	TenantID string
	At       time.Time
}

// TenantVisits reads which tenants people have visited. The directory implements it.
type TenantVisits interface {
	// Visits lists a person's visits, the last one first.
	Visits(ctx context.Context, userID string) ([]TenantVisit, error)
	// SavedVisits lists the visits that are in the database, the last one first.
	SavedVisits(ctx context.Context, userID string) ([]TenantVisit, error)
	// HasVisit reports whether this node's memory holds a visit at a time or later.
	HasVisit(userID, tenantID string, since time.Time) bool
}

// visitedSince reports whether a person has visited a tenant since they joined it. Its creator, who has no joining
// time, need not.
func visitedSince(visits []TenantVisit, tenantID string, joined time.Time) bool {
	return joined.IsZero() || slices.ContainsFunc(visits, func(v TenantVisit) bool {
		return v.TenantID == tenantID && !v.At.Before(joined)
	})
}

// DeclinedInvitations stores who has declined an invitation, because the facts do not name them. The directory
// implements it.
type DeclinedInvitations interface {
	// NoteDeclined records that a person has declined a tenant's invitation, and ForgetDeclined deletes the record.
	// Both are idempotent.
	NoteDeclined(ctx context.Context, tenantID, userID string) error
	ForgetDeclined(ctx context.Context, tenantID, userID string) error
	// HasDeclined reports whether a person has declined a tenant's invitation.
	HasDeclined(ctx context.Context, tenantID, userID string) (bool, error)
}

// HasConfirmed reports whether a member has confirmed their membership. Members whom no one added need not.
func HasConfirmed(ctx context.Context, visits TenantVisits, tenant state.Tenant, userID string) (bool, error) {
	member := tenant.Members[userID]
	if !member.WasPending {
		return true, nil
	}
	list, err := visits.Visits(ctx, userID)
	return visitedSince(list, tenant.ID, member.CreatedAt), err
}

// visitsTimeout limits the wait for the database of a call that names no tenant; an evaluation does not need it.
const visitsTimeout = time.Second

// CanonicalTenant returns the tenant of a person's calls that name none, or "": the first tenant that they created and
// were not added back to, else the first confirmed, in the order of TenantsOf. It reads visits from the database only
// if they are not in memory. Without the database, it returns the person's only tenant or none.
func CanonicalTenant(
	ctx context.Context, p People, visits TenantVisits, userID string, tenants []string,
) (string, error) {
	id, certain := KnownCanonicalTenant(p, visits, userID, tenants)
	if certain {
		return id, nil
	}
	ctx, cancel := context.WithTimeout(ctx, visitsTimeout)
	defer cancel()
	saved, err := visits.SavedVisits(ctx, userID)
	switch {
	case commands.KindOf(err) == commands.Unavailable && len(tenants) == 1:
		return tenants[0], nil
	case commands.KindOf(err) == commands.Unavailable:
		return "", nil
	case err != nil:
		return "", err
	}
	id, _ = canonicalTenant(p, userID, tenants, func(id string, joined time.Time) bool {
		return visits.HasVisit(userID, id, joined) || visitedSince(saved, id, joined)
	})
	return id, nil
}

// KnownCanonicalTenant returns the canonical tenant by the visits in memory. It is not certain if the database may
// hold a visit of an earlier tenant in the order.
func KnownCanonicalTenant(p People, visits TenantVisits, userID string, tenants []string) (id string, certain bool) {
	return canonicalTenant(p, userID, tenants, func(id string, joined time.Time) bool {
		return visits.HasVisit(userID, id, joined)
	})
}

// canonicalTenant is certain if it skips no tenant whose confirmation is unknown.
func canonicalTenant(
	p People, userID string, tenants []string, confirmed func(tenantID string, joined time.Time) bool,
) (first string, certain bool) {
	certain = true
	for _, id := range tenants {
		joined := p.JoinedAt(id, userID)
		if joined.IsZero() {
			return id, true
		}
		if first != "" {
			continue
		}
		if confirmed(id, joined) {
			first = id
		} else {
			certain = false
		}
	}
	return first, certain
}

// AcceptMembership confirms a membership or accepts an invitation. It returns NotFound without either.
func (s *SignIn) AcceptMembership(
	ctx context.Context, do writer.Runner[state.Tenant], c Claims, tenantID string,
) (done writer.Done, err error) {
	tenant, err := writer.ReadTenant(ctx, s.Writer, tenantID)
	if err != nil {
		return done, err
	}
	if _, member := tenant.Members[c.UserID]; !tenant.Exists || !member {
		if tenant, done, err = s.acceptInvitation(ctx, do, c, tenantID); err != nil {
			return done, err
		}
	}
	if err := s.forgetInvitation(ctx, c, tenant); err != nil { // an earlier call may have failed to
		return done, err
	}
	return done, s.Directory.SaveVisit(ctx, c.UserID, tenantID, tenant.Members[c.UserID].CreatedAt)
}

// forgetInvitation deletes a member's invited address and the record of an earlier decline.
func (s *SignIn) forgetInvitation(ctx context.Context, c Claims, tenant state.Tenant) error {
	if err := s.Directory.ForgetDeclined(ctx, tenant.ID, c.UserID); err != nil {
		return err
	}
	id, err := s.invitation(ctx, c, tenant.ID)
	switch {
	case commands.KindOf(err) == commands.NotFound:
		return nil
	case err != nil:
		return err
	case !commands.WasMember(&tenant, id):
		return nil
	}
	return s.Directory.Forget(ctx, id)
}

func (s *SignIn) acceptInvitation(
	ctx context.Context, do writer.Runner[state.Tenant], c Claims, tenantID string,
) (tenant state.Tenant, done writer.Done, err error) {
	id, err := s.invitation(ctx, c, tenantID)
	if err != nil {
		return tenant, done, err
	}
	tenant, done, err = do(ctx, commands.JoinTenant{TenantRef: commands.TenantRef{TenantID: tenantID}, ID: id,
		UserID: c.UserID, Accepted: true})
	if err != nil {
		return tenant, done, err
	}
	if _, member := tenant.Members[c.UserID]; !tenant.Exists || !member {
		return tenant, done, notInvited()
	}
	return tenant, done, nil
}

// invitation returns a tenant's pending member for a person's verified address.
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
	return commands.Refuse(commands.NotFound,
		"the caller is not a member of the tenant, and it has not invited their verified address")
}

// DeclineMembership removes a person from a tenant that they were added to, or declines an invitation. It returns
// NotFound without either.
func (s *SignIn) DeclineMembership(
	ctx context.Context, do writer.Runner[state.Tenant], c Claims, leave commands.LeaveTenant,
) (writer.Done, error) {
	tenant, err := writer.ReadTenant(ctx, s.Writer, leave.TenantID)
	if err != nil {
		return writer.Done{}, err
	}
	if _, member := tenant.Members[c.UserID]; !tenant.Exists || !member {
		return s.declineInvitation(ctx, do, c, tenant)
	}
	leave.UserID = c.UserID
	_, done, err := do(ctx, leave)
	return done, err
}

// declineInvitation records who declines before it appends the fact, which does not name them. If the append fails,
// the record only means that the person must accept.
func (s *SignIn) declineInvitation(
	ctx context.Context, do writer.Runner[state.Tenant], c Claims, tenant state.Tenant,
) (writer.Done, error) {
	id, err := s.invitation(ctx, c, tenant.ID)
	if err != nil {
		return writer.Done{}, err
	}
	if err := s.Directory.NoteDeclined(ctx, tenant.ID, c.UserID); err != nil {
		return writer.Done{}, err
	}
	_, done, err := do(ctx,
		commands.DeclineInvitation{RemoveMember: commands.RemoveMember{
			TenantRef: commands.TenantRef{TenantID: tenant.ID}, UserID: id,
		}})
	if err != nil && (commands.KindOf(err) != commands.NotFound || !commands.WasMember(&tenant, id)) {
		return done, err
	}
	return done, cmp.Or(s.Directory.Forget(ctx, id), err) // even if an earlier call declined the invitation
}

// MembershipOffer is an unconfirmed membership or an open invitation of a person.
type MembershipOffer struct {
	TenantID   string
	TenantName string
	Role       string
	By         string // the person who added or invited them; may be empty
	Invitation bool   // an invitation to accept; otherwise a membership
}

// MembershipOffers lists unconfirmed memberships and open invitations of a person, up to maxJoins each. It logs and
// leaves out what takes longer than joinTime, so that sign-in works.
func (s *SignIn) MembershipOffers(ctx context.Context, c Claims) []MembershipOffer {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	list, err := s.unconfirmed(ctx, c.UserID)
	if err == nil && c.EmailVerified {
		var invitations []MembershipOffer
		invitations, err = s.invitations(ctx, c)
		list = append(list, invitations...)
	}
	if err != nil {
		s.Log.Warn("memberships to confirm and invitations cannot be listed", "user", c.UserID, "err", err)
	}
	return list
}

// unconfirmed lists the memberships that a person has not confirmed.
func (s *SignIn) unconfirmed(ctx context.Context, userID string) (list []MembershipOffer, err error) {
	visits, err := s.Directory.Visits(ctx, userID)
	if err != nil {
		return nil, err
	}
	for _, id := range s.People.TenantsOf(userID) {
		if visitedSince(visits, id, s.People.JoinedAt(id, userID)) {
			continue
		}
		tenant, err := writer.ReadTenant(ctx, s.Writer, id)
		if err != nil {
			return list, err
		}
		if m := tenant.Members[userID]; tenant.Exists && m.WasPending && !visitedSince(visits, id, m.CreatedAt) {
			list = append(list, MembershipOffer{TenantID: id, TenantName: tenant.Name, Role: string(m.Role), By: m.InvitedBy})
		}
		if len(list) == maxJoins {
			break
		}
	}
	return list, nil
}

// invitations lists the invitations that a person may accept.
func (s *SignIn) invitations(ctx context.Context, c Claims) (list []MembershipOffer, err error) {
	pending, err := s.Directory.PendingMemberships(ctx, c.Email, true, maxJoins)
	if err != nil {
		return nil, err
	}
	for _, p := range pending {
		tenant, err := writer.ReadTenant(ctx, s.Writer, p.TenantID)
		if err != nil {
			return list, err
		}
		if m, invited := tenant.Members[p.ID]; tenant.Exists && invited {
			list = append(list, MembershipOffer{
				TenantID: p.TenantID, TenantName: tenant.Name, Role: string(m.Role), By: m.InvitedBy, Invitation: true,
			})
		}
	}
	return list, nil
}
