package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	maxInvitations   = 5 // of one purpose, to an address within invitationWindow, by all nodes
	invitationWindow = time.Hour
	placeRetry       = 5 * time.Minute // of a job that waits for a place
	placeWait        = 24 * time.Hour  // the longest that a job waits for one
)

// purpose is what a mail is for. It is stored, and stays as it is.
type purpose string

const (
	forInvitation purpose = "invitation"
	forSandbox    purpose = "sandbox" // anybody can have one mailed to any address, so it takes no place of an invitation
)

// InvitationLimit bounds how many invitations are mailed to an address, and how many links to sandboxes. It owns the table mailed_invitations: each row is a
// place, of a mail that went out or is going out now.
type InvitationLimit struct{ pool *pgxpool.Pool }

// NewInvitationLimit returns the limit that all nodes on a database share.
func NewInvitationLimit(pool *pgxpool.Pool) *InvitationLimit { return &InvitationLimit{pool} }

// take takes a place of an address for a job that mails to it now, unless all are taken. A job whose node died has its place already.
func (l *InvitationLimit) take(ctx context.Context, jobID int64, why purpose, email string, now time.Time) (taken bool, err error) {
	err = pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		// Jobs with the same address take turns, so that each counts those before it.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('flagledger invitations ' || lower($1 collate "C"), 0))`, email); err != nil {
			return err
		}
		place, err := tx.Exec(ctx, `insert into keep.mailed_invitations (job, email, mailed_at, purpose) select $1, $2, $3, $6
			where (select count(*) from keep.mailed_invitations
				where lower(email collate "C") = lower($2 collate "C") and purpose = $6 and mailed_at > $4 and job <> $1) < $5
			on conflict (job) do update set email = excluded.email, mailed_at = excluded.mailed_at`,
			jobID, email, now, now.Add(-invitationWindow), maxInvitations, why)
		taken = place.RowsAffected() > 0
		return err
	})
	return taken, databaseError(err)
}

// giveUp frees the place of a job whose mail was not sent, also where the node stops: else it would keep others waiting.
func (l *InvitationLimit) giveUp(ctx context.Context, jobID int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	_, err := l.pool.Exec(ctx, `delete from keep.mailed_invitations where job = $1`, jobID)
	return databaseError(err)
}

// RemoveOld forgets the addresses that were invited an hour ago or earlier.
func (l *InvitationLimit) RemoveOld(ctx context.Context, now time.Time) error {
	_, err := l.pool.Exec(ctx, `delete from keep.mailed_invitations where mailed_at <= $1`, now.Add(-invitationWindow))
	return databaseError(err)
}

// Knows implements commands.PersonalData: an address that was invited is no sign of a person.
func (l *InvitationLimit) Knows(context.Context, string) (bool, error) { return false, nil }

// Erase implements commands.PersonalData. It drops the address of a person, which the directory must still hold.
func (l *InvitationLimit) Erase(ctx context.Context, userID string) error {
	_, err := l.pool.Exec(ctx, `delete from keep.mailed_invitations where lower(email collate "C") = (select lower(email collate "C") from keep.people where user_id = $1)`, userID)
	return databaseError(err)
}
