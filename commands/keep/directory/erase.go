package directory

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Erase drops all that the directory holds of a person: name and address, their invitations and contacts under that
// address, and which tenants they used. It may be repeated.
func (d *Directory) Erase(ctx context.Context, userID string) error {
	const email = `(select lower(email collate "C") from keep.people where user_id = $1)`
	err := pgx.BeginFunc(ctx, d.db, func(tx pgx.Tx) error {
		for _, statement := range []string{
			`select from keep.people where user_id = $1 for update`, // this waits for a flush of their uses that is under way
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

// ForgetContactNames drops the name of whom to write to about some tenants. It may be repeated.
func (d *Directory) ForgetContactNames(ctx context.Context, tenantIDs []string) error {
	_, err := d.db.Exec(ctx, `update keep.tenant_contacts set contact_name = null where tenant_id = any($1)`, tenantIDs)
	return databaseError(err)
}
