package directory

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
)

// Invitee finds whom an address that is to be invited belongs to: a person with that verified address, or else the pending member of the tenant
// that has it. Where there is neither, it notes the address for a pending member with the id newID.
func (d *Directory) Invitee(ctx context.Context, tenantID, email, newID string) (id string, pending bool, err error) {
	err = d.db.QueryRow(ctx, `select user_id from keep.people where lower(email) = lower($1) and email_verified`, email).Scan(&id)
	if err == nil {
		return id, false, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return "", false, unavailable(err)
	}
	err = d.db.QueryRow(ctx, `insert into keep.pending_members values ($1, $2, $3)
		on conflict (lower(email), tenant_id) do update set email = pending_members.email returning id`, newID, tenantID, email).Scan(&id)
	if err != nil {
		return "", false, unavailable(err)
	}
	return id, true, nil
}

// InvitationsOf lists the tenants that have invited an address.
func (d *Directory) InvitationsOf(ctx context.Context, email string) ([]commands.Pending, error) {
	rows, err := d.db.Query(ctx, `select tenant_id, id from keep.pending_members where lower(email) = lower($1) order by created_at, id`, email)
	if err != nil {
		return nil, unavailable(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[commands.Pending])
	if err != nil {
		return nil, unavailable(err)
	}
	return list, nil
}

// Profile is what the directory knows of a member of a tenant.
type Profile struct {
	Email       string
	DisplayName string
	LastAccess  *time.Time // of the tenant
	Known       bool       // false for someone since erased
}

// Profile tells what is known of a member, pending or not.
func (d *Directory) Profile(ctx context.Context, tenantID, id string) (Profile, error) {
	var p Profile
	err := d.db.QueryRow(ctx, `select coalesce(p.email, i.email, ''), coalesce(p.display_name, ''), u.at, coalesce(p.user_id, i.id) is not null
		from (values ($2::text)) member(id) left join keep.people p on p.user_id = member.id left join keep.pending_members i on i.id = member.id
		left join keep.tenant_use u on u.user_id = member.id and u.tenant_id = $1`, tenantID, id).Scan(&p.Email, &p.DisplayName, &p.LastAccess, &p.Known)
	if err != nil {
		return p, unavailable(err)
	}
	return p, nil
}

// Forget drops the address of a pending member. Of any other id there is nothing to drop.
func (d *Directory) Forget(ctx context.Context, id string) error {
	if _, err := d.db.Exec(ctx, `delete from keep.pending_members where id = $1`, id); err != nil {
		return unavailable(err)
	}
	return nil
}
