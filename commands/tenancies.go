package commands

import (
	"context"
	"slices"
	"time"

	"flagledger/events"
)

// Contact is whom to write to about a tenant: what was sent of it. nil leaves a part as it is, and empty clears it.
type Contact struct{ Email, Name *string }

// Tenancies creates, changes and deletes tenants together with whom to write to about them, which is no fact: it stands
// in the directory.
type Tenancies struct {
	Directory interface {
		ContactChanges(ctx context.Context, tenantID string, email, name *string) ([]events.ContactField, error)
		SetContact(ctx context.Context, tenantID string, version events.Revision, email, name *string) error
	}
	// Keepings are all that hold something personal of tenants. The directory is the first: the others take nothing for
	// people who are not in it.
	Keepings []TenantData
	// Uses are what it counted, which may be too much for one request; nil without.
	Uses TenantData
}

// forgetUsesWithin is how long a request forgets uses. A job forgets the rest.
const forgetUsesWithin = 10 * time.Second

// TenantData is a keeping that holds something personal of tenants, as of the demo people of a sandbox.
type TenantData interface {
	// ForgetTenant drops what it holds of a tenant that has ended. It may be repeated.
	ForgetTenant(ctx context.Context, tenantID string) error
}

// Create creates a tenant, and saves the contact first, so that a tenant is never without the one that was sent. Where
// the facts then cannot be appended, the contact belongs to no tenant until the request is made again with its key.
func (t *Tenancies) Create(
	ctx context.Context, do Runner[Tenant], create CreateTenant, c Contact,
) (Tenant, Done, error) {
	sent := c.Email != nil || c.Name != nil && *c.Name != ""
	if sent && create.Created.check() == nil {
		if err := t.Directory.SetContact(ctx, create.ID, 0, c.Email, c.Name); err != nil {
			return Tenant{}, Done{}, err
		}
	}
	return do(ctx, create)
}

// only is what is sent of some fields.
func (c Contact) only(fields []events.ContactField) (part Contact) {
	if slices.Contains(fields, events.PrimaryEmail) {
		part.Email = c.Email
	}
	if slices.Contains(fields, events.ContactName) {
		part.Name = c.Name
	}
	return part
}

// Update changes a tenant, and then what its fact tells of its contact: changes that are made at once take effect in
// the order of their facts. Where the contact cannot be noted, the fact stays, and the same request made again notes
// it, unless it was changed since.
func (t *Tenancies) Update(
	ctx context.Context, do Runner[Tenant], update UpdateTenant, c Contact,
) (tenant Tenant, done Done, err error) {
	if c != (Contact{}) {
		if update.Contact, err = t.Directory.ContactChanges(ctx, update.TenantID, c.Email, c.Name); err != nil {
			return tenant, done, err
		}
	}
	tenant, done, err = do(ctx, update)
	if err != nil || len(update.Contact) == 0 {
		return tenant, done, err
	}
	c = c.only(update.Contact)
	return tenant, done, t.Directory.SetContact(ctx, update.TenantID, done.Revision, c.Email, c.Name)
}

// Delete ends a tenant, and then forgets it. Where that fails, the tenant has ended all the same, and a job forgets it,
// as it does uses that are many.
func (t *Tenancies) Delete(ctx context.Context, do Runner[Tenant], remove DeleteTenant) (Done, error) {
	_, done, err := do(ctx, remove)
	if err == nil {
		err = t.forgetKeepings(ctx, remove.TenantID)
	}
	if err != nil || t.Uses == nil {
		return done, err
	}
	short, cancel := context.WithTimeout(ctx, forgetUsesWithin)
	defer cancel()
	if err = t.Uses.ForgetTenant(short, remove.TenantID); short.Err() != nil && ctx.Err() == nil {
		return done, nil
	}
	return done, err
}

// Forget drops what is kept of a tenant that has ended. It may be repeated.
func (t *Tenancies) Forget(ctx context.Context, tenantID string) error {
	if err := t.forgetKeepings(ctx, tenantID); err != nil || t.Uses == nil {
		return err
	}
	return t.Uses.ForgetTenant(ctx, tenantID)
}

func (t *Tenancies) forgetKeepings(ctx context.Context, tenantID string) error {
	for _, keeping := range t.Keepings {
		if err := keeping.ForgetTenant(ctx, tenantID); err != nil {
			return err
		}
	}
	return nil
}
