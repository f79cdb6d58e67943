package directory

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// SaveInvitationEmail saves the address of an invitation to the platform. It is idempotent.
func (d *Directory) SaveInvitationEmail(ctx context.Context, invitationID, email string) error {
	_, err := d.db.Exec(ctx, `insert into keep.invitations values ($1, $2) on conflict (id) do nothing`, invitationID,
		email)
	return databaseError(err)
}

// InvitationEmail returns the address of an invitation; "" if it was erased.
func (d *Directory) InvitationEmail(ctx context.Context, invitationID string) (email string, err error) {
	err = d.db.QueryRow(ctx, `select coalesce((select email from keep.invitations where id = $1), '')`, invitationID).
		Scan(&email)
	return email, databaseError(err)
}

// PlatformInvitations lists the invitations of an address, newest first.
func (d *Directory) PlatformInvitations(ctx context.Context, email string) ([]string, error) {
	rows, err := d.db.Query(ctx,
		`select id from keep.invitations where lower(email collate "C") = lower($1 collate "C") order by id desc`, email)
	if err != nil {
		return nil, databaseError(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, databaseError(err)
}
