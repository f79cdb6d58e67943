package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/keep"
)

// Window limits what all nodes do for a key: within a period, or on a day in UTC if the period is 0.
type Window struct {
	kind, key string // stored; the key is a person's address if kind is of mails
	Max       int
	period    time.Duration
}

// Kinds of windows for mails. They are stored, so they never change.
const (
	forInvitation = "invitation mails"
	forSandbox    = "sandbox mails" // anyone can request one to any address, so it takes no slot of an invitation
)

// mailsTo limits the mails of a kind to an address.
func mailsTo(email, kind string) Window {
	return Window{kind, commands.EmailKey(email), maxMails, mailWindow}
}

// PlatformInvitations limits all invitations to the platform on a day together.
func PlatformInvitations(perDay int) Window { return Window{"platform invitations", "", perDay, 0} }

// TenantInvitations limits the invitations of a tenant on a day.
func TenantInvitations(id string, perDay int) Window {
	return Window{"tenant invitations", id, perDay, 0}
}

// PersonInvitations limits the invitations of a person in all their tenants on a day.
func PersonInvitations(id string, perDay int) Window {
	return Window{"person invitations", id, perDay, 0}
}

// end returns when a slot that is taken now becomes free.
func (w *Window) end(now time.Time) time.Time {
	if w.period == 0 {
		return now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	return now.Add(w.period)
}

// Windows counts what all nodes do. It owns the table window_slots, with a row for each use of a window.
type Windows struct{ pool *pgxpool.Pool }

// NewWindows returns the windows shared by the nodes on a database.
func NewWindows(pool *pgxpool.Pool) *Windows { return &Windows{pool} }

var errFull = errors.New("a window is full")

// Take takes a slot of each window, or none if one is full, which it returns. A holder that takes again uses its slots
// once more. All callers pass tenants before people, so that transactions lock in one order.
//
// Errors are *commands.Error, Unavailable if the database cannot be reached.
func (w *Windows) Take(
	ctx context.Context, now time.Time, holder string, windows ...Window,
) (full *Window, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		for _, one := range windows {
			// Holders run one after the other, so that each counts the ones before.
			if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('flagledger ' || $1 || ' ' || $2, 0))`,
				one.kind, one.key); err != nil {
				return err
			}
			slot, err := tx.Exec(ctx, `insert into keep.window_slots (kind, key, holder, ends) select $1, $2, $3, $4
				where (select count(*) from keep.window_slots
					where kind = $1 and key = $2 and holder <> $3 and ends > $5) < $6
				on conflict (kind, key, holder) do update set ends = excluded.ends`,
				one.kind, one.key, holder, one.end(now), now, one.Max)
			if err != nil {
				return err
			}
			if slot.RowsAffected() == 0 {
				full = &one
				return errFull
			}
		}
		return nil
	})
	if errors.Is(err, errFull) {
		return full, nil
	}
	return nil, windowError(err)
}

// GiveBack frees the slots of a holder, even while the node stops: otherwise others would wait for them.
func (w *Windows) GiveBack(ctx context.Context, holder string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	_, err := w.pool.Exec(ctx, `delete from keep.window_slots where holder = $1`, holder)
	return windowError(err)
}

// RemoveOld deletes slots that have ended. Nodes of the previous release note mails in mailed_invitations.
func (w *Windows) RemoveOld(ctx context.Context, now time.Time) error {
	_, err := w.pool.Exec(ctx, `with previous as (delete from keep.mailed_invitations where mailed_at <= $2)
		delete from keep.window_slots where ends <= $1`, now, now.Add(-mailWindow))
	return windowError(err)
}

// Knows implements people.PersonalData. A mailed address does not make a person known.
func (w *Windows) Knows(context.Context, string) (bool, error) { return false, nil }

// Erase implements people.PersonalData. It deletes a person's address, which must still be in the directory.
func (w *Windows) Erase(ctx context.Context, userID string) error {
	_, err := w.pool.Exec(
		ctx,
		`with person as (select lower(email collate "C") as email from keep.people where user_id = $1),
			previous as (delete from keep.mailed_invitations where lower(email collate "C") = (select email from person))
		delete from keep.window_slots where key = (select email from person)`,
		userID,
	)
	return windowError(err)
}

func windowError(err error) error {
	return keep.DatabaseError("limits cannot be counted at this moment", err)
}
