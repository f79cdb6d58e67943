package directory

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
)

// Person returns the person with an address, verified or not; "" if there is none.
func (d *Directory) Person(ctx context.Context, email string) (userID string, err error) {
	err = d.db.QueryRow(ctx, `select coalesce((select user_id from keep.people
		where lower(email collate "C") = lower($1 collate "C")), '')`, email).
		Scan(&userID)
	return userID, databaseError(err)
}

// AddPending returns the id of the tenant's pending member with an address. If there is none, it saves the address
// with newID.
func (d *Directory) AddPending(
	ctx context.Context, tenantID, email, newID string, mustAccept bool,
) (id string, err error) {
	err = d.db.QueryRow(ctx, `insert into keep.pending_members (id, tenant_id, email, must_accept)
		values (@id, @tenant, @email, @must)
		on conflict (lower(email collate "C"), tenant_id) do update
			set created_at = excluded.created_at, must_accept = excluded.must_accept
		returning id`, pgx.NamedArgs{"id": newID, "tenant": tenantID, "email": email, "must": mustAccept}).
		Scan(&id)
	return id, databaseError(err)
}

// PendingMemberships lists the latest tenant invitations of an address, oldest first, up to a limit: those that must
// be accepted, or the others.
func (d *Directory) PendingMemberships(
	ctx context.Context, email string, mustAccept bool, most int,
) ([]commands.PendingMember, error) {
	rows, err := d.db.Query(ctx, `select tenant_id, id from (
		select * from keep.pending_members where lower(email collate "C") = lower(@email collate "C") and must_accept = @must
		order by created_at desc, id desc limit @most) last order by created_at, id`,
		pgx.NamedArgs{"email": email, "must": mustAccept, "most": most})
	if err != nil {
		return nil, databaseError(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[commands.PendingMember])
	return list, databaseError(err)
}

// PendingMembership returns the id of a tenant's pending member with an address; "" if there is none.
func (d *Directory) PendingMembership(ctx context.Context, tenantID, email string) (id string, err error) {
	err = d.db.QueryRow(ctx, `select coalesce((
		select id from keep.pending_members where tenant_id = $1 and lower(email collate "C") = lower($2 collate "C")), '')`, tenantID, email).Scan(&id)
	return id, databaseError(err)
}

// NoteDeclined records that a person has declined a tenant's invitation, unless they have been erased. It is
// idempotent.
func (d *Directory) NoteDeclined(ctx context.Context, tenantID, userID string) error {
	_, err := d.db.Exec(ctx, `insert into keep.declined_invitations (tenant_id, user_id)
		select $1, user_id from keep.people where user_id = $2 for key share
		on conflict do nothing`, tenantID, userID)
	return databaseError(err)
}

// ForgetDeclined deletes the record that a person has declined a tenant's invitation. It is idempotent.
func (d *Directory) ForgetDeclined(ctx context.Context, tenantID, userID string) error {
	_, err := d.db.Exec(ctx, `delete from keep.declined_invitations where tenant_id = $1 and user_id = $2`, tenantID,
		userID)
	return databaseError(err)
}

// HasDeclined reports whether a person has declined a tenant's invitation.
func (d *Directory) HasDeclined(ctx context.Context, tenantID, userID string) (declined bool, err error) {
	err = d.db.QueryRow(ctx, `select exists (select from keep.declined_invitations where tenant_id = $1 and user_id = $2)`, tenantID, userID).
		Scan(&declined)
	return declined, databaseError(err)
}

// Profile is the directory's data of a member.
type Profile struct {
	Email          string
	DisplayName    string
	LastAccessedAt *time.Time // of the tenant
	Known          bool       // false for an erased person
}

// Profile returns the directory's data of a member, pending or not.
func (d *Directory) Profile(ctx context.Context, tenantID, id string) (Profile, error) {
	rows, err := d.db.Query(
		ctx,
		`select coalesce(p.email, i.email, '') as email, coalesce(p.display_name, '') as display_name,
			u.at as last_accessed_at, coalesce(p.user_id, i.id) is not null as known
		from (values ($2::text)) member(id) left join keep.people p on p.user_id = member.id left
			join keep.pending_members i on i.id = member.id
		left join keep.tenant_use u on u.user_id = member.id and u.tenant_id = $1`,
		tenantID,
		id,
	)
	if err != nil {
		return Profile{}, databaseError(err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Profile])
	if err != nil {
		return Profile{}, databaseError(err)
	}
	return p, nil
}

// Forget deletes the address of a pending member, if there is one.
func (d *Directory) Forget(ctx context.Context, id string) error {
	_, err := d.db.Exec(ctx, `delete from keep.pending_members where id = $1`, id)
	return databaseError(err)
}

// ForgetUninvited deletes the address of a pending member without an invitation if it was saved at least a minute ago:
// the inviting request has failed.
func (d *Directory) ForgetUninvited(ctx context.Context, id string) error {
	_, err := d.db.Exec(ctx, `delete from keep.pending_members where id = $1 and created_at < now() - interval '1 minute'`,
		id)
	return databaseError(err)
}
