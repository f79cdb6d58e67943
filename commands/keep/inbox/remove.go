package inbox

import (
	"context"

	"flagledger/commands"
)

// ForgetTenant implements commands.TenantData: it drops the notifications that were sent in a tenant, and those of its
// demo people.
func (b *Inbox) ForgetTenant(ctx context.Context, tenantID string) error {
	_, err := b.db.Exec(ctx, `delete from keep.notifications where tenant_id = $1 or user_id = any($2)`, tenantID,
		commands.DemoPeopleIDs(tenantID))
	return databaseError(err)
}

// Knows implements commands.PersonalData: only people whom the directory knows have anything here.
func (b *Inbox) Knows(context.Context, string) (bool, error) { return false, nil }

// Erase implements commands.PersonalData. The directory must have dropped the person before: then nothing is added any
// more.
func (b *Inbox) Erase(ctx context.Context, userID string) error {
	_, err := b.db.Exec(ctx,
		`with devices as (delete from keep.devices where user_id = $1) delete from keep.notifications where user_id = $1`,
		userID)
	return databaseError(err)
}

// removeBatch is how many notifications one statement removes at most, so that none takes long.
const removeBatch = 5000

// RemoveOld removes the notifications that are older than 90 days.
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
