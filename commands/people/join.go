package people

import (
	"context"
	"sync"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
)

const (
	// maxJoins limits the tenants that a person joins at one sign-in, and joinTime its duration.
	maxJoins = 20
	joinTime = 2 * time.Second
)

// joinTenants makes a person a member of all tenants that invited their address. A tenant that cannot be joined in
// time blocks neither the sign-in nor other tenants.
func (s *SignIn) joinTenants(ctx context.Context, by writer.By, c Claims) error {
	invited, err := s.Directory.PendingMemberships(ctx, c.Email, false, maxJoins)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	var joining sync.WaitGroup
	for _, pending := range invited {
		joining.Go(func() {
			if err := s.join(ctx, by, c, pending); err != nil {
				s.Log.Warn("a person could not join a tenant; it is tried again when they sign in",
					"request", by.RequestID, "user", c.UserID, "tenant", pending.TenantID, "err", err)
			}
		})
	}
	joining.Wait()
	return nil
}

// join makes a person the pending member of a tenant, and deletes the address once it is not pending. A tenant without
// the pending member may be about to add it: the address was saved first.
func (s *SignIn) join(ctx context.Context, by writer.By, c Claims, p commands.PendingMember) error {
	declined, err := s.Directory.HasDeclined(ctx, p.TenantID, c.UserID)
	if err != nil {
		return err
	}
	tenant, _, err := writer.Do(ctx, s.Writer, by,
		commands.JoinTenant{TenantRef: commands.TenantRef{TenantID: p.TenantID}, ID: p.ID, UserID: c.UserID,
			Declined: declined})
	switch {
	case err != nil:
		return err
	case tenant.Exists && tenant.Members[p.ID].Pending: // they left or declined with another address: they must accept
		_, err := s.Directory.AddPending(ctx, p.TenantID, c.Email, p.ID, true)
		return err
	case !tenant.Exists || tenant.FormerMembers[p.ID]:
		return s.Directory.Forget(ctx, p.ID)
	default:
		return s.Directory.ForgetUninvited(ctx, p.ID)
	}
}
