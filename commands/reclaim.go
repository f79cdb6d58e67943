package commands

import (
	"context"
	"slices"

	"github.com/google/uuid"
)

// Reclaimer gives an account to the owner of its address. Until the address was verified somebody else may have made
// the account and used it.
type Reclaimer struct {
	Writer    *Writer
	People    People
	Tenancies *Tenancies
	// Keepings hold something of people beside their account, as the devices that their notifications are pushed to.
	Keepings []PersonalData
}

// secondPersonalTenants is the namespace of the ids of tenants that people get in place of their first ones.
var secondPersonalTenants = uuid.MustParse("d0c2b1de-95a4-5c0e-8a1b-6c1d5a0f7e42")

// reclaim drops what an account has made and joined. It leaves each tenant that has another admin, and deletes the
// others with their clients, members and flags. Somebody who has begun to use the service then gets an empty tenant.
//
// All sessions must have ended before. It may be repeated.
func (r *Reclaimer) reclaim(ctx context.Context, by By, userID string) error {
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	fresh := uuid.NewSHA1(secondPersonalTenants, []byte(userID)).String()
	service := ByService()
	service.RequestID, service.CorrelationID = by.RequestID, by.CorrelationID
	err := forEachConcurrently(ctx, r.People.TenantsOf(userID), func(id string) error {
		if id == fresh { // made by an earlier attempt
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

// catchUp waits until People knows what was appended before, also by other nodes: the account may have made or joined a
// tenant a moment ago.
func (r *Reclaimer) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return r.Writer.awaitHead(ctx, nil)
}

// dropTenant takes a person from a tenant, or deletes it where nobody else is an admin who can sign in. One that they
// are no member of is left alone.
func (r *Reclaimer) dropTenant(ctx context.Context, by By, tenantID, userID string) error {
	tenant, err := ReadTenant(ctx, r.Writer, tenantID)
	if err != nil {
		return err
	}
	shutOut := slices.DeleteFunc(tenant.Admins(), func(id string) bool { return !r.People.ShutOut(id) })
	_, _, err = Do(ctx, r.Writer, by,
		LeaveTenant{RemoveMember{TenantRef: TenantRef{tenantID}, UserID: userID, ShutOut: shutOut}})
	if KindOf(err) == Conflict {
		do := func(ctx context.Context, cmd Command[Tenant]) (Tenant, Done, error) {
			return Do(ctx, r.Writer, by, cmd)
		}
		_, err = r.Tenancies.Delete(ctx, do, DeleteTenant{TenantRef{tenantID}})
	}
	if KindOf(err) == NotFound {
		return nil
	}
	return err
}
