// Package directory stores the names and addresses that facts leave out, so that they can be erased, and which tenant
// a person visited last.
package directory

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/maypok86/otter/v2"
	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/commands"
	"flagledger/commands/keep"
	"flagledger/commands/people"
	"flagledger/events"
	"flagledger/retry"
)

// Directory is the directory in a database. Errors are *commands.Error, Unavailable if the database cannot be reached.
type Directory struct {
	db      *pgxpool.Pool
	now     func() time.Time
	unsaved *xsync.Map[visit, time.Time]   // not in the database yet
	saved   *otter.Cache[visit, time.Time] // in the database, cached
}

type visit struct{ userID, tenantID string }

const maxCachedVisits = 100_000

// New returns the directory in a database. now returns the time.
func New(db *pgxpool.Pool, now func() time.Time) *Directory {
	return &Directory{
		db: db, now: now, unsaved: xsync.NewMap[visit, time.Time](),
		saved: otter.Must(&otter.Options[visit, time.Time]{MaximumSize: maxCachedVisits}),
	}
}

func databaseError(err error) error {
	return keep.DatabaseError("the directory cannot be reached", err)
}

// ContactChanges returns the fields that SetContact would change.
func (d *Directory) ContactChanges(
	ctx context.Context, tenantID string, email, name *string,
) (fields []events.ContactField, err error) {
	var emailNow, nameNow string
	err = d.db.QueryRow(ctx, `select coalesce(primary_email, ''), coalesce(contact_name, '') from keep.tenant_contacts
		where tenant_id = $1`, tenantID).
		Scan(&emailNow, &nameNow)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, databaseError(err)
	}
	if email != nil && *email != emailNow {
		fields = append(fields, events.PrimaryEmail)
	}
	if name != nil && *name != nameNow {
		fields = append(fields, events.ContactName)
	}
	return fields, nil
}

// SetContact stores the contact of a tenant: nil changes nothing, and an empty text clears. Without an email, the
// creator's is shown. A value stored at this version of the tenant or a later one stays.
func (d *Directory) SetContact(
	ctx context.Context, tenantID string, version events.Revision, email, name *string,
) error {
	_, err := d.db.Exec(
		ctx,
		`insert into keep.tenant_contacts as c (tenant_id, primary_email, contact_name, email_version, name_version)
		values ($1, nullif($3, ''), nullif($4, ''), case when $3::text is null then 0 else $2::bigint end, case
			when $4::text is null then 0 else $2::bigint end)
		on conflict (tenant_id) do update set
			primary_email = case when c.email_version < excluded.email_version then excluded.primary_email
				else c.primary_email end,
			contact_name = case when c.name_version < excluded.name_version then excluded.contact_name else c.contact_name end,
			email_version = greatest(c.email_version, excluded.email_version),
			name_version = greatest(c.name_version, excluded.name_version)`,
		tenantID,
		version,
		email,
		name,
	)
	return databaseError(err)
}

// ForgetTenant removes the contact of a deleted tenant, the addresses that it invited, the records of declined
// invitations, and a sandbox's demo people. It is idempotent.
func (d *Directory) ForgetTenant(ctx context.Context, tenantID string) error {
	_, err := d.db.Exec(
		ctx,
		`with contact as (delete from keep.tenant_contacts where tenant_id = $1), demo as (delete from keep.people
			where user_id = any($2)),
			declined as (delete from keep.declined_invitations where tenant_id = $1)
		delete from keep.pending_members where tenant_id = $1`,
		tenantID,
		commands.DemoPeopleIDs(tenantID),
	)
	return databaseError(err)
}

// NoteVisit implements commands.Directory. Run saves the visit.
func (d *Directory) NoteVisit(userID, tenantID string, joined time.Time) {
	d.unsaved.Store(visit{userID, tenantID}, d.visitTime(joined))
}

// SaveVisit implements commands.Directory.
func (d *Directory) SaveVisit(ctx context.Context, userID, tenantID string, joined time.Time) error {
	at := d.visitTime(joined)
	err := d.write(ctx, []string{userID}, []string{tenantID}, []time.Time{at})
	if err == nil {
		d.cacheVisit(visit{userID, tenantID}, at)
	}
	return err
}

// cacheVisit caches a visit from the database, unless a later one is cached already.
func (d *Directory) cacheVisit(v visit, at time.Time) {
	d.saved.Compute(v, func(last time.Time, found bool) (time.Time, otter.ComputeOp) {
		if found && !at.After(last) {
			return last, otter.CancelOp
		}
		return at, otter.WriteOp
	})
}

// HasVisit implements people.TenantVisits.
func (d *Directory) HasVisit(userID, tenantID string, since time.Time) bool {
	v := visit{userID, tenantID}
	if at, ok := d.unsaved.Load(v); ok && !at.Before(since) {
		return true
	}
	at, ok := d.saved.GetIfPresent(v)
	return ok && !at.Before(since)
}

// visitTime returns the time of a visit. It is never before the person joined, by the store's clock: the node's clock
// may be behind.
func (d *Directory) visitTime(joined time.Time) time.Time {
	if now := d.now(); now.After(joined) {
		return now
	}
	return joined
}

// Run saves the visits at an interval until ctx ends, and then once more.
func (d *Directory) Run(ctx context.Context, interval time.Duration, log *slog.Logger) {
	retry.Every(ctx, interval, func() {
		if err := d.flush(ctx); err != nil && ctx.Err() == nil {
			log.Warn("tenant visits could not be saved; the next attempt includes them", "err", err)
		}
	})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = d.flush(ctx)
}

func (d *Directory) flush(ctx context.Context) error {
	var users, tenants []string
	var times []time.Time
	d.unsaved.Range(func(v visit, at time.Time) bool {
		users, tenants, times = append(users, v.userID), append(tenants, v.tenantID), append(times, at)
		return true
	})
	if len(users) == 0 {
		return nil
	}
	if err := d.write(ctx, users, tenants, times); err != nil {
		return err
	}
	for i := range users {
		d.cacheVisit(visit{users[i], tenants[i]}, times[i]) // before unsaved loses it
		d.unsaved.Compute(visit{users[i], tenants[i]}, func(at time.Time, _ bool) (time.Time, xsync.ComputeOp) {
			if at.Equal(times[i]) {
				return at, xsync.DeleteOp
			}
			return at, xsync.CancelOp
		})
	}
	return nil
}

// write saves visits. It keeps a saved time that is later.
func (d *Directory) write(ctx context.Context, users, tenants []string, times []time.Time) error {
	_, err := d.db.Exec(
		ctx,
		`insert into keep.tenant_use select visits.* from unnest($1::text[], $2::text[], $3::timestamptz[]) visits (user_id,
			tenant_id, at)
		join keep.people using (user_id) order by user_id, tenant_id -- the same order on all nodes prevents deadlocks
		for key share of people -- a person erased meanwhile gets no row
		on conflict (user_id, tenant_id) do update set at = greatest(tenant_use.at, excluded.at)`,
		users,
		tenants,
		times,
	)
	return databaseError(err)
}

// Visits implements people.TenantVisits.
func (d *Directory) Visits(ctx context.Context, userID string) ([]people.TenantVisit, error) {
	if err := d.flush(ctx); err != nil {
		return nil, err
	}
	return d.SavedVisits(ctx, userID)
}

// SavedVisits implements people.TenantVisits.
func (d *Directory) SavedVisits(ctx context.Context, userID string) ([]people.TenantVisit, error) {
	rows, err := d.db.Query(ctx, `select tenant_id, at from keep.tenant_use where user_id = $1 order by at desc`, userID)
	if err != nil {
		return nil, databaseError(err)
	}
	visits, err := pgx.CollectRows(rows, pgx.RowToStructByName[people.TenantVisit])
	for _, v := range visits {
		d.cacheVisit(visit{userID, v.TenantID}, v.At)
	}
	return visits, databaseError(err)
}

// tenantGrace protects visits of tenants that this node does not know yet.
const tenantGrace = 2 * time.Hour

// RemoveVisits removes visits of deleted tenants. A person's last visit stays, because it shows when they were last
// here.
func (d *Directory) RemoveVisits(ctx context.Context, exists func(tenantID string) bool) error {
	rows, err := d.db.Query(ctx, `select distinct tenant_id from keep.tenant_use where at < $1`, d.now().Add(-tenantGrace))
	if err != nil {
		return databaseError(err)
	}
	gone, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return databaseError(err)
	}
	if gone = slices.DeleteFunc(gone, exists); len(gone) == 0 {
		return nil
	}
	_, err = d.db.Exec(ctx, `delete from keep.tenant_use u where tenant_id = any($1) and at < $2
		and exists (select from keep.tenant_use later where later.user_id = u.user_id
			and (later.at, later.tenant_id) > (u.at, u.tenant_id))`, gone, d.now().Add(-tenantGrace))
	return databaseError(err)
}
