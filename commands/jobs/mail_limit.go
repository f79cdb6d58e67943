package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	maxMails   = 5 // of one purpose, to an address within mailWindow, by all nodes
	mailWindow = time.Hour
	placeRetry = 5 * time.Minute // of a job that waits for a place
	placeWait  = 24 * time.Hour  // the longest that a job waits for one
)

// purpose is what a mail is for. It is stored, and stays as it is.
type purpose string

const (
	forInvitation purpose = "invitation"
	forSandbox    purpose = "sandbox" // anybody can have one mailed to any address, so it takes no place of an invitation
)

// MailLimit bounds how many invitations are mailed to an address in an hour, and how many links to sandboxes.
//
// It owns the table mailed_invitations, where each row is the place of a mail that went out or is going out now. The
// table, the lock and the task that removes old rows have their names from when it held invitations alone.
type MailLimit struct{ pool *pgxpool.Pool }

// NewMailLimit returns the limit that all nodes on a database share.
func NewMailLimit(pool *pgxpool.Pool) *MailLimit { return &MailLimit{pool} }

// take takes a place of an address for a job that mails to it now, unless all are taken. A job whose node died has its
// place already.
func (l *MailLimit) take(
	ctx context.Context, jobID int64, why purpose, email string, now time.Time,
) (taken bool, err error) {
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		// Jobs with the same address wait for each other, so that each counts those before it.
		if _, err := tx.Exec(
			ctx, `select pg_advisory_xact_lock(hashtextextended('flagledger invitations ' || lower($1 collate "C"), 0))`, email,
		); err != nil {
			return err
		}
		place, err := tx.Exec(ctx, `insert into keep.mailed_invitations (job, email, mailed_at, purpose) select $1, $2, $3, $6
			where (select count(*) from keep.mailed_invitations
				where lower(email collate "C") = lower($2 collate "C") and purpose = $6 and mailed_at > $4 and job <> $1) < $5
			on conflict (job) do update set email = excluded.email, mailed_at = excluded.mailed_at`,
			jobID, email, now, now.Add(-mailWindow), maxMails, why)
		taken = place.RowsAffected() > 0
		return err
	})
	return taken, mailError(err)
}

// giveBack frees the place of a job whose mail was not sent, also where the node stops: else it would keep others
// waiting.
func (l *MailLimit) giveBack(ctx context.Context, jobID int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	_, err := l.pool.Exec(ctx, `delete from keep.mailed_invitations where job = $1`, jobID)
	return mailError(err)
}

// RemoveOld forgets the addresses that were mailed to an hour ago or earlier.
func (l *MailLimit) RemoveOld(ctx context.Context, now time.Time) error {
	_, err := l.pool.Exec(ctx, `delete from keep.mailed_invitations where mailed_at <= $1`, now.Add(-mailWindow))
	return mailError(err)
}

// Knows implements commands.PersonalData: an address that was mailed to is no sign of a person.
func (l *MailLimit) Knows(context.Context, string) (bool, error) { return false, nil }

// Erase implements commands.PersonalData. It drops the address of a person, which the directory must still hold.
func (l *MailLimit) Erase(ctx context.Context, userID string) error {
	_, err := l.pool.Exec(
		ctx,
		`delete from keep.mailed_invitations where lower(email collate "C") = (select lower(email collate "C")
			from keep.people where user_id = $1)`,
		userID,
	)
	return mailError(err)
}
