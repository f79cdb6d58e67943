package inbox

import (
	"context"

	"flagledger/commands"
)

// ForgetTenant implements tenants.TenantData: it deletes the notifications of a tenant and of its demo people.
func (b *Inbox) ForgetTenant(ctx context.Context, tenantID string) error {
	_, err := b.db.Exec(ctx, `delete from keep.notifications where tenant_id = $1 or user_id = any($2)`, tenantID,
		commands.DemoPeopleIDs(tenantID))
	return databaseError(err)
}

// Knows implements people.PersonalData. Only people in the directory have an inbox.
func (b *Inbox) Knows(context.Context, string) (bool, error) { return false, nil }

// Erase implements people.PersonalData. Erase the person from the directory first, so that nothing is added
// afterwards.
func (b *Inbox) Erase(ctx context.Context, userID string) error {
	_, err := b.db.Exec(ctx,
		`with devices as (delete from keep.devices where user_id = $1) delete from keep.notifications where user_id = $1`,
		userID)
	return databaseError(err)
}

// removeBatch limits the notifications that one statement deletes, so that none takes long.
const removeBatch = 5000

// RemoveOld deletes notifications after 90 days.
func (b *Inbox) RemoveOld(ctx context.Context) error {
	for {
		done, err := b.db.Exec(ctx,
			`delete from keep.notifications where id in (select id from keep.notifications where created_at <= $1 limit $2)`,
			b.now().Add(-kept), removeBatch)
		if err != nil || done.RowsAffected() < removeBatch {
			return databaseError(err)
		}
	}
}
