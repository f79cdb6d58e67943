// Package tenants creates, changes and deletes tenants together with what belongs to them beside facts.
package tenants

import (
	"context"
	"slices"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// Contact is the contact of a tenant as sent. nil leaves a field unchanged, and empty clears it.
type Contact struct{ Email, Name *string }

// Tenancies creates, changes and deletes tenants together with their contacts, which are not facts but in the
// directory.
type Tenancies struct {
	Directory interface {
		ContactChanges(ctx context.Context, tenantID string, email, name *string) ([]events.ContactField, error)
		SetContact(ctx context.Context, tenantID string, version events.Revision, email, name *string) error
	}
	// Keepings are all keepings with personal data of tenants. The directory comes first: the others accept only
	// people in it.
	Keepings []TenantData
	// Uses are usage counts, which may be too many for one request; nil without.
	Uses TenantData
}

// forgetUsesWithin limits how long a request deletes usage counts. A job deletes the rest.
const forgetUsesWithin = 10 * time.Second

// TenantData is a keeping with personal data of tenants, such as of a sandbox's demo people.
type TenantData interface {
	// ForgetTenant deletes the data of a deleted tenant. It is idempotent.
	ForgetTenant(ctx context.Context, tenantID string) error
}

// Create saves the contact and then creates the tenant, so that no tenant lacks its contact. If the facts cannot be
// appended, the contact is unused until the request is retried with its key.
func (t *Tenancies) Create(
	ctx context.Context, do writer.Runner[state.Tenant], create commands.CreateTenant, c Contact,
) (state.Tenant, writer.Done, error) {
	sent := c.Email != nil || c.Name != nil && *c.Name != ""
	if sent && create.Created.Check() == nil {
		if err := t.Directory.SetContact(ctx, create.ID, 0, c.Email, c.Name); err != nil {
			return state.Tenant{}, writer.Done{}, err
		}
	}
	return do(ctx, create)
}

// only returns the contact with some fields only.
func (c Contact) only(fields []events.ContactField) (part Contact) {
	if slices.Contains(fields, events.PrimaryEmail) {
		part.Email = c.Email
	}
	if slices.Contains(fields, events.ContactName) {
		part.Name = c.Name
	}
	return part
}

// Update changes a tenant and then its contact, so that concurrent changes take effect in the order of their facts. If
// the contact cannot be saved, the fact stays, and a retry saves it unless it has changed since.
func (t *Tenancies) Update(
	ctx context.Context, do writer.Runner[state.Tenant], update commands.UpdateTenant, c Contact,
) (tenant state.Tenant, done writer.Done, err error) {
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

// Delete ends a tenant and then deletes its data. If that fails or takes too long, a job continues.
func (t *Tenancies) Delete(ctx context.Context, do writer.Runner[state.Tenant],
	remove commands.DeleteTenant) (writer.Done, error) {
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

// Forget deletes the data of a deleted tenant. It is idempotent.
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
