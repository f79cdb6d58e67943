package people

import (
	"context"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events/state"
)

// Inviter invites people to tenants and to the platform. The facts hold only ids; addresses are in the directory.
type Inviter struct {
	Writer    *writer.Writer
	Directory interface {
		// Person returns the person with an address, verified or not; "" if there is none.
		Person(ctx context.Context, email string) (userID string, err error)
		// PendingMembership returns the id of a tenant's pending member with an address; "" if there is none.
		PendingMembership(ctx context.Context, tenantID, email string) (id string, err error)
		DeclinedInvitations
		// AddPending returns the id of the tenant's pending member with an address. If there is none, it saves the
		// address with newID.
		AddPending(ctx context.Context, tenantID, email, newID string, mustAccept bool) (id string, err error)
		// Forget deletes the address of a pending member, if there is one.
		Forget(ctx context.Context, id string) error
		// SaveInvitationEmail saves the address of an invitation to the platform. It is idempotent.
		SaveInvitationEmail(ctx context.Context, invitationID, email string) error
		// PlatformInvitations lists the invitations of an address, newest first.
		PlatformInvitations(ctx context.Context, email string) ([]string, error)
	}
	// Invitations reads the read model.
	Invitations interface {
		HasPendingInvitation(ctx context.Context, email string) (bool, error)
	}
	SuperUsers SuperUsers
}

// InviteMember adds a pending member for an e-mail address. newID is used unless the address already has an id. The
// result reveals whether the address has an account only if its owner left the tenant or declined.
//
// The address is saved before the fact, so that every pending member has one. A retry reuses the saved id. An address
// without a pending member is deleted when its owner signs in.
func (i *Inviter) InviteMember(
	ctx context.Context, do writer.Runner[state.Tenant], invite commands.InviteMember, email, newID string,
) (id string, m state.Member, done writer.Done, err error) {
	if invite.Person, err = i.Directory.Person(ctx, email); err != nil {
		return "", state.Member{}, writer.Done{}, err
	}
	if invite.Declined, err = i.Directory.HasDeclined(ctx, invite.TenantID, invite.Person); err != nil {
		return "", state.Member{}, writer.Done{}, err
	}
	tenant, err := writer.ReadTenant(ctx, i.Writer, invite.TenantID)
	if err != nil {
		return "", state.Member{}, writer.Done{}, err
	}
	// Reuse the id if an earlier invitation or attempt has saved the address.
	if invite.ID, err = i.Directory.PendingMembership(ctx, invite.TenantID, email); err != nil {
		return "", state.Member{}, writer.Done{}, err
	}
	if invite.ID == "" {
		invite.ID = newID
	}
	_, refused := invite.Decide(tenant)
	if refused == nil { // AddPending changes a saved address
		if invite.ID, err = i.Directory.AddPending(ctx, invite.TenantID, email, newID, invite.MustAccept); err != nil {
			return "", state.Member{}, writer.Done{}, err
		}
	}
	tenant, done, err = do(ctx, invite)
	if err != nil {
		return "", state.Member{}, writer.Done{}, err
	}
	// The check refused, but the command succeeded: the state has changed, or this is a retry.
	if refused != nil && tenant.Members[invite.ID].Pending {
		if _, err = i.Directory.AddPending(
			ctx, invite.TenantID, email, invite.ID, tenant.Members[invite.ID].MustAccept,
		); err != nil {
			return "", state.Member{}, writer.Done{}, err
		}
	}
	// In a retry the first attempt's newID counts, even if its address was deleted when the person signed in.
	if m, repeated := tenant.Members[newID]; repeated {
		return newID, m, done, nil
	}
	return invite.ID, tenant.Members[invite.ID], done, nil
}

// RemoveMember ends a membership, and then deletes the address of a pending member. If that fails, the address is
// deleted when its owner signs in, or with the tenant.
func (i *Inviter) RemoveMember(
	ctx context.Context, do writer.Runner[state.Tenant], remove commands.Command[state.Tenant], userID string,
) (writer.Done, error) {
	_, done, err := do(ctx, remove)
	if err != nil {
		return done, err
	}
	return done, i.Directory.Forget(ctx, userID)
}

// InviteToPlatform invites an address to a platform role. The address is saved before the fact, so that every
// invitation has one. An address without a fact has no effect.
func (i *Inviter) InviteToPlatform(
	ctx context.Context, do writer.Runner[state.Invitation], create commands.CreateInvitation, email string,
) (state.Invitation, writer.Done, error) {
	var err error
	if create.AlreadyPending, err = i.Invitations.HasPendingInvitation(ctx, email); err != nil {
		return state.Invitation{}, writer.Done{}, err
	}
	if !create.AlreadyPending {
		if err := i.Directory.SaveInvitationEmail(ctx, create.ID, email); err != nil {
			return state.Invitation{}, writer.Done{}, err
		}
	}
	return do(ctx, create)
}
