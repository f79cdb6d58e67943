package people

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/tenants"
	"flagledger/commands/writer"
	"flagledger/events/state"
)

// Reclaimer returns an account to the owner of its address. Before the address was verified, another person may have
// created and used the account.
type Reclaimer struct {
	Writer    *writer.Writer
	People    People
	Tenancies *tenants.Tenancies
	// Keepings hold further data of people, such as devices for notifications.
	Keepings []PersonalData
}

// secondPersonalTenants is the namespace of the ids of tenants that replace people's first ones.
var secondPersonalTenants = uuid.MustParse("d0c2b1de-95a4-5c0e-8a1b-6c1d5a0f7e42")

// reclaim removes what an account has created and joined: it leaves tenants that have another admin, and deletes the
// others. A registered person then gets an empty tenant.
//
// All sessions must have ended before. It is idempotent.
func (r *Reclaimer) reclaim(ctx context.Context, by writer.By, userID string) error {
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	fresh := uuid.NewSHA1(secondPersonalTenants, []byte(userID)).String()
	service := writer.ByService()
	service.RequestID, service.CorrelationID = by.RequestID, by.CorrelationID
	err := writer.ForEachConcurrently(ctx, r.People.TenantsOf(userID), func(id string) error {
		if id == fresh { // created by an earlier attempt
			return nil
		}
		return r.dropTenant(ctx, service, id, userID)
	})
	if err != nil {
		return err
	}
	for _, keeping := range r.Keepings {
		if err := keeping.Erase(ctx, userID); err != nil {
			return err
		}
	}
	if !r.People.Registered(userID) {
		return nil
	}
	return createPersonalTenant(ctx, r.Writer, by, fresh, userID)
}

const catchUpTimeout = 5 * time.Second

// catchUp waits until People knows all earlier events, also of other nodes: the account may just have created or
// joined a tenant.
func (r *Reclaimer) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	return r.Writer.AwaitHead(ctx, nil)
}

// dropTenant removes a person from a tenant, or deletes it if no other admin can sign in. It ignores a tenant of
// others.
func (r *Reclaimer) dropTenant(ctx context.Context, by writer.By, tenantID, userID string) error {
	tenant, err := writer.ReadTenant(ctx, r.Writer, tenantID)
	if err != nil {
		return err
	}
	shutOut := slices.DeleteFunc(commands.Admins(&tenant), func(id string) bool { return !r.People.ShutOut(id) })
	_, _, err = writer.Do(ctx, r.Writer, by,
		commands.LeaveTenant{RemoveMember: commands.RemoveMember{TenantRef: commands.TenantRef{TenantID: tenantID},
			UserID: userID, ShutOut: shutOut}})
	if commands.KindOf(err) == commands.Conflict {
		do := func(ctx context.Context, cmd commands.Command[state.Tenant]) (state.Tenant, writer.Done, error) {
			return writer.Do(ctx, r.Writer, by, cmd)
		}
		_, err = r.Tenancies.Delete(ctx, do, commands.DeleteTenant{TenantRef: commands.TenantRef{TenantID: tenantID}})
	}
	if commands.KindOf(err) == commands.NotFound {
		return nil
	}
	return err
}
