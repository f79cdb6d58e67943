package commands

import "context"

// Inviter invites people to tenants and to the platform. The facts hold ids alone; the addresses stand in the
// directory.
type Inviter struct {
	Writer    *Writer
	Directory interface {
		// Person finds the person with an address, verified or not; empty where there is none.
		Person(ctx context.Context, email string) (userID string, err error)
		// PendingMembership returns the id of a tenant's pending member with an address, empty without one.
		PendingMembership(ctx context.Context, tenantID, email string) (id string, err error)
		DeclinedInvitations
		// AddPending finds the tenant's pending member with an address, or saves the address for one with the id newID.
		AddPending(ctx context.Context, tenantID, email, newID string, mustAccept bool) (id string, err error)
		// Forget drops the address of a pending member. Of any other id there is nothing to drop.
		Forget(ctx context.Context, id string) error
		// SaveInvitationEmail notes the address of an invitation to the platform. It may be repeated.
		SaveInvitationEmail(ctx context.Context, invitationID, email string) error
		// PlatformInvitations lists the invitations to an address, the newest first.
		PlatformInvitations(ctx context.Context, email string) ([]string, error)
	}
	// Invitations looks in the read model.
	Invitations interface {
		HasPendingInvitation(ctx context.Context, email string) (bool, error)
	}
	SuperUsers SuperUsers
}

// InviteMember makes whoever has an address a pending member of a tenant, with the id newID, and returns the member and
// its id. It does the same whether or not somebody has an account with the address, unless that person has left the
// tenant or declined its invitation.
//
// The address is saved before the fact, so that a pending member is never without it. If the fact cannot be appended,
// the same call made again uses the id that was saved. An address that is never used is dropped when its owner signs
// in.
func (i *Inviter) InviteMember(
	ctx context.Context, do Runner[Tenant], invite InviteMember, email, newID string,
) (id string, m Member, done Done, err error) {
	if invite.Person, err = i.Directory.Person(ctx, email); err != nil {
		return "", Member{}, Done{}, err
	}
	if invite.Declined, err = i.Directory.HasDeclined(ctx, invite.TenantID, invite.Person); err != nil {
		return "", Member{}, Done{}, err
	}
	tenant, err := ReadTenant(ctx, i.Writer, invite.TenantID)
	if err != nil {
		return "", Member{}, Done{}, err
	}
	// The address may be saved under an id already, of a pending member or of an earlier attempt.
	if invite.ID, err = i.Directory.PendingMembership(ctx, invite.TenantID, email); err != nil {
		return "", Member{}, Done{}, err
	}
	if invite.ID == "" {
		invite.ID = newID
	}
	_, refused := invite.decide(tenant)
	if refused == nil { // a refused call changes no address that is saved
		if invite.ID, err = i.Directory.AddPending(ctx, invite.TenantID, email, newID, invite.MustAccept); err != nil {
			return "", Member{}, Done{}, err
		}
	}
	tenant, done, err = do(ctx, invite)
	if err != nil {
		return "", Member{}, Done{}, err
	}
	// what it was refused for has gone meanwhile, or it is repeated
	if refused != nil && tenant.Members[invite.ID].Pending {
		if _, err = i.Directory.AddPending(
			ctx, invite.TenantID, email, invite.ID, tenant.Members[invite.ID].MustAccept,
		); err != nil {
			return "", Member{}, Done{}, err
		}
	}
	// the request invited them when it was made before; they may have signed in since
	if m, repeated := tenant.Members[newID]; repeated {
		return newID, m, done, nil
	}
	return invite.ID, tenant.Members[invite.ID], done, nil
}

// RemoveMember ends a membership, and then drops the address that a pending member was invited by. Where that fails,
// the address is dropped when its owner signs in, or the tenant is deleted.
func (i *Inviter) RemoveMember(
	ctx context.Context, do Runner[Tenant], remove Command[Tenant], userID string,
) (Done, error) {
	_, done, err := do(ctx, remove)
	if err != nil {
		return done, err
	}
	return done, i.Directory.Forget(ctx, userID)
}

// InviteToPlatform invites an address to a role on the platform. The address is saved before the fact, so that an
// invitation is never without it; without the fact it invites nobody.
func (i *Inviter) InviteToPlatform(
	ctx context.Context, do Runner[Invitation], create CreateInvitation, email string,
) (Invitation, Done, error) {
	var err error
	if create.AlreadyPending, err = i.Invitations.HasPendingInvitation(ctx, email); err != nil {
		return Invitation{}, Done{}, err
	}
	if !create.AlreadyPending {
		if err := i.Directory.SaveInvitationEmail(ctx, create.ID, email); err != nil {
			return Invitation{}, Done{}, err
		}
	}
	return do(ctx, create)
}
