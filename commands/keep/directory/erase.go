package directory

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Erase drops all that the keepings know of a person: name and address, password, sessions, the address where it was invited or noted as a
// contact, and who is the contact of the tenants that the person created, most likely the same person. Facts and read models, which hold the id
// alone, stay as they are. It may be repeated.
func (d *Directory) Erase(ctx context.Context, userID string, createdTenantIDs []string) error {
	const email = `(select lower(email) from keep.people where user_id = $1)`
	err := pgx.BeginFunc(ctx, d.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update keep.tenant_contacts set contact_name = null where tenant_id = any($1)`, createdTenantIDs); err != nil {
			return err
		}
		for _, statement := range []string{
			`delete from keep.pending_members where lower(email) = ` + email,
			`delete from keep.invitations where lower(email) = ` + email,
			`update keep.tenant_contacts set primary_email = null, contact_name = null where lower(primary_email) = ` + email,
			`delete from keep.refresh_tokens where user_id = $1`,
			`delete from keep.mailed_tokens where user_id = $1`,
			`delete from keep.passwords where user_id = $1`,
			`delete from keep.tenant_use where user_id = $1`,
			`delete from keep.people where user_id = $1`,
		} {
			if _, err := tx.Exec(ctx, statement, userID); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// Knows reports whether there is anything to erase of a person's name, address and password.
func (d *Directory) Knows(ctx context.Context, userID string) (known bool, err error) {
	err = d.db.QueryRow(ctx, `select exists (select from keep.people where user_id = $1) or exists (select from keep.passwords where user_id = $1)`, userID).Scan(&known)
	if err != nil {
		return false, unavailable(err)
	}
	return known, nil
}
