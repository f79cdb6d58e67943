// Package inbox stores people's notifications and devices, and the pushes that are pending.
package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/keep"
	"flagledger/commands/notify"
)

const (
	maxNotifications = 1000 // of a person
	maxOfTenant      = 200  // in one tenant, so that it does not displace other tenants' notifications
	maxDevices       = 20
	kept             = 90 * 24 * time.Hour
)

// Inbox holds all people's inboxes and devices in a database. Errors are *commands.Error, Unavailable if the database
// cannot be reached.
type Inbox struct {
	db     *pgxpool.Pool
	pushes Pushes
	now    func() time.Time
}

// Pushes queues pushes.
type Pushes interface {
	// EnqueuePushesTx pushes the pending notifications of some devices once tx is committed.
	EnqueuePushesTx(ctx context.Context, tx pgx.Tx, deviceIDs []string) error
}

// New returns the inboxes in a database. now returns the time.
func New(db *pgxpool.Pool, pushes Pushes, now func() time.Time) *Inbox {
	return &Inbox{db, pushes, now}
}

func databaseError(err error) error {
	return keep.DatabaseError("notifications cannot be reached", err)
}

const columns = `id, user_id, coalesce(tenant_id, '') as tenant_id, type, title, body, icon, action_type, reference_id,
	data, created_at, read_at`

func scan(row pgx.CollectableRow) (notify.Notification, error) {
	return pgx.RowToStructByName[notify.Notification](row)
}

// one returns the notification that a query selects or changes, or NotFound.
func one(rows pgx.Rows, err error) (notify.Notification, error) {
	if err != nil {
		return notify.Notification{}, databaseError(err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return n, &commands.Error{Kind: commands.NotFound, Detail: "there is no such notification"}
	}
	return n, databaseError(err)
}

// lockPerson serializes changes of a person's inbox. It returns NotFound for an unknown person: erasing deletes them
// from the directory first, so that nothing is added afterwards.
func lockPerson(ctx context.Context, tx pgx.Tx, userID string) error {
	found, err := tx.Exec(ctx, `select from keep.people where user_id = $1 for no key update`, userID)
	if err == nil && found.RowsAffected() == 0 {
		return &commands.Error{Kind: commands.NotFound, Detail: "there is no such recipient"}
	}
	return err
}

// Add adds a notification and queues its pushes, in one transaction. If its id exists, it returns that notification.
// It returns NotFound for an unknown person.
//
// Above 200 notifications of its tenant, or 1,000 in all, it deletes the oldest, read ones first.
func (b *Inbox) Add(ctx context.Context, n notify.Notification) (added notify.Notification, err error) {
	if n.Data == nil {
		n.Data = map[string]string{}
	}
	err = pgx.BeginFunc(ctx, b.db, func(tx pgx.Tx) error {
		if err := lockPerson(ctx, tx, n.UserID); err != nil {
			return err
		}
		rows, err := tx.Query(
			ctx,
			`insert into keep.notifications (id, user_id, tenant_id, type, title, body, icon, action_type, reference_id, data,
				created_at)
			select $1, $2, nullif($3, ''), $4, $5, $6, $7, $8, $9, $10,
				greatest($11, (select max(created_at) + interval '1 microsecond' from keep.notifications where user_id = $2))
			on conflict (id) do nothing returning `+columns,
			n.ID,
			n.UserID,
			n.TenantID,
			n.Type,
			n.Title,
			n.Body,
			n.Icon,
			n.ActionType,
			n.ReferenceID,
			n.Data,
			b.now(),
		)
		if added, err = one(rows, err); commands.KindOf(err) == commands.NotFound {
			added, err = one(
				tx.Query(ctx, `select `+columns+` from keep.notifications where id = $1 and user_id = $2`, n.ID, n.UserID),
			)
			return err
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(
			ctx,
			`delete from keep.notifications where id in (select id from keep.notifications where user_id = $1 and tenant_id = $2
			order by read_at is null desc, created_at desc offset $3)`,
			n.UserID,
			n.TenantID,
			maxOfTenant,
		); err != nil {
			return err
		}
		if _, err := tx.Exec(
			ctx,
			`delete from keep.notifications where id in (select id from keep.notifications where user_id = $1
			order by read_at is null desc, created_at desc offset $2)`,
			n.UserID,
			maxNotifications,
		); err != nil {
			return err
		}
		return b.push(ctx, tx, added)
	})
	return added, databaseError(err)
}

// List selects notifications of a person's inbox.
type List struct {
	UnreadOnly bool
	// Tenants are the tenants to include, beside notifications of no tenant; nil includes all.
	Tenants []string
	// Before is a notification's CreatedAt: only older ones are listed. The zero time means from the newest.
	Before time.Time
	Limit  int
	Offset int
}

// Page is a page of a person's inbox.
type Page struct {
	Notifications []notify.Notification // newest first
	More          bool                  // there are older ones
	Total         int                   // in all pages
	Unread        int
}

// List lists a person's notifications.
func (b *Inbox) List(ctx context.Context, userID string, l List) (p Page, err error) {
	sameMoment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, b.db, sameMoment, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select count(*) filter (where read_at is null
			or not $2), count(*) filter (where read_at is null)
			from keep.notifications where user_id = $1 and ($3::text[] is null or tenant_id is null or tenant_id = any($3))`,
			userID, l.UnreadOnly, l.Tenants).
			Scan(&p.Total, &p.Unread)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `select `+columns+` from keep.notifications
			where user_id = $1 and (read_at is null or not $2) and ($3::timestamptz is null or created_at < $3)
				and ($4::text[] is null or tenant_id is null or tenant_id = any($4))
			order by created_at desc limit $5 offset $6`, userID, l.UnreadOnly, orNull(l.Before), l.Tenants, l.Limit+1, l.Offset)
		if err != nil {
			return err
		}
		p.Notifications, err = pgx.CollectRows(rows, scan)
		return err
	})
	if len(p.Notifications) > l.Limit {
		p.Notifications, p.More = p.Notifications[:l.Limit], true
	}
	return p, databaseError(err)
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Get returns a person's notification, or NotFound.
func (b *Inbox) Get(ctx context.Context, userID, id string) (notify.Notification, error) {
	return one(b.db.Query(ctx, `select `+columns+` from keep.notifications where id = $1 and user_id = $2`, id, userID))
}

// Read marks a person's notification as read and returns it. It does not change one that was read before.
func (b *Inbox) Read(ctx context.Context, userID, id string) (notify.Notification, error) {
	return one(
		b.db.Query(ctx,
			`update keep.notifications set read_at = coalesce(read_at, $3) where id = $1 and user_id = $2 returning `+columns,
			id, userID, b.now()),
	)
}

// ReadAll marks all of a person's notifications as read, and returns how many were unread.
func (b *Inbox) ReadAll(ctx context.Context, userID string) (int, error) {
	marked, err := b.db.Exec(ctx, `update keep.notifications set read_at = $2 where user_id = $1 and read_at is null`,
		userID, b.now())
	return int(marked.RowsAffected()), databaseError(err)
}

// Clear removes all of a person's notifications, and returns how many.
func (b *Inbox) Clear(ctx context.Context, userID string) (int, error) {
	cleared, err := b.db.Exec(ctx, `delete from keep.notifications where user_id = $1`, userID)
	return int(cleared.RowsAffected()), databaseError(err)
}
