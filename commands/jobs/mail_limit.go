package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	maxMails   = 5 // for one purpose to an address within mailWindow, all nodes together
	mailWindow = time.Hour
	slotRetry  = 5 * time.Minute // of a job that waits for a slot
	slotWait   = 24 * time.Hour  // the longest wait for a slot
)

// purpose says what a mail is for. It is stored, so it never changes.
type purpose string

const (
	forInvitation purpose = "invitation"
	forSandbox    purpose = "sandbox" // anyone can request one to any address, so it takes no slot of an invitation
)

// MailLimit limits the invitations and the sandbox links mailed to an address in an hour.
//
// It owns the table mailed_invitations; each row is the slot of a sent or outgoing mail. The table, the lock and the
// cleanup task are named after invitations, its first purpose.
type MailLimit struct{ pool *pgxpool.Pool }

// NewMailLimit returns the limit shared by the nodes on a database.
func NewMailLimit(pool *pgxpool.Pool) *MailLimit { return &MailLimit{pool} }

// take takes a slot of an address for a job, unless all are taken. A job whose node died already has its slot.
func (l *MailLimit) take(
	ctx context.Context, jobID int64, why purpose, email string, now time.Time,
) (taken bool, err error) {
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		// Jobs with the same address run one after the other, so that each counts the ones before.
		if _, err := tx.Exec(
			ctx, `select pg_advisory_xact_lock(hashtextextended('flagledger invitations ' || lower($1 collate "C"), 0))`, email,
		); err != nil {
			return err
		}
		slot, err := tx.Exec(ctx, `insert into keep.mailed_invitations (job, email, mailed_at, purpose) select $1, $2, $3, $6
			where (select count(*) from keep.mailed_invitations
				where lower(email collate "C") = lower($2 collate "C") and purpose = $6 and mailed_at > $4 and job <> $1) < $5
			on conflict (job) do update set email = excluded.email, mailed_at = excluded.mailed_at`,
			jobID, email, now, now.Add(-mailWindow), maxMails, why)
		taken = slot.RowsAffected() > 0
		return err
	})
	return taken, mailError(err)
}

// release frees the slot of a job whose mail was not sent, even while the node stops: otherwise others would wait for
// it.
func (l *MailLimit) release(ctx context.Context, jobID int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	_, err := l.pool.Exec(ctx, `delete from keep.mailed_invitations where job = $1`, jobID)
	return mailError(err)
}

// RemoveOld deletes slots after an hour.
func (l *MailLimit) RemoveOld(ctx context.Context, now time.Time) error {
	_, err := l.pool.Exec(ctx, `delete from keep.mailed_invitations where mailed_at <= $1`, now.Add(-mailWindow))
	return mailError(err)
}

// Knows implements commands.PersonalData. A mailed address does not make a person known.
func (l *MailLimit) Knows(context.Context, string) (bool, error) { return false, nil }

// Erase implements commands.PersonalData. It deletes a person's address, which must still be in the directory.
func (l *MailLimit) Erase(ctx context.Context, userID string) error {
	_, err := l.pool.Exec(
		ctx,
		`delete from keep.mailed_invitations where lower(email collate "C") = (select lower(email collate "C")
			from keep.people where user_id = $1)`,
		userID,
	)
	return mailError(err)
}
