package directory

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Erase deletes a person's data: name and address, invitations and contacts with that address, and tenant visits. It
// is idempotent.
func (d *Directory) Erase(ctx context.Context, userID string) error {
	const email = `(select lower(email collate "C") from keep.people where user_id = $1)`
	err := pgx.BeginFunc(ctx, d.db, func(tx pgx.Tx) error {
		for _, statement := range []string{
			`select from keep.people where user_id = $1 for update`, // waits for a concurrent flush of their visits
			`delete from keep.pending_members where lower(email collate "C") = ` + email,
			`delete from keep.invitations where lower(email collate "C") = ` + email,
			`update keep.tenant_contacts set primary_email = null, contact_name = null where lower(primary_email collate "C") = ` + email,
			`delete from keep.tenant_use where user_id = $1`,
			`delete from keep.declined_invitations where user_id = $1`,
			`delete from keep.people where user_id = $1`,
		} {
			if _, err := tx.Exec(ctx, statement, userID); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
	return databaseError(err)
}

// Knows reports whether the directory has a person's name or address.
func (d *Directory) Knows(ctx context.Context, userID string) (known bool, err error) {
	if err := d.db.QueryRow(ctx, `select exists (select from keep.people where user_id = $1)`, userID).
		Scan(&known); err != nil {
		return false, databaseError(err)
	}
	return known, nil
}

// ForgetContactNames deletes the contact names of some tenants. It is idempotent.
func (d *Directory) ForgetContactNames(ctx context.Context, tenantIDs []string) error {
	_, err := d.db.Exec(ctx, `update keep.tenant_contacts set contact_name = null where tenant_id = any($1)`, tenantIDs)
	return databaseError(err)
}
