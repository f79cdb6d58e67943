package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	maxInvitations   = 5 // to an address within invitationWindow, by all nodes
	invitationWindow = time.Hour
)

// mayInvite notes that a job mails an invitation to an address now, and reports false where it would be one too many. Further attempts of a job are the
// same mail.
func (m *Mails) mayInvite(ctx context.Context, job int64, email string) (may bool, err error) {
	now := m.Now()
	err = pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		// Jobs with the same address take turns, so that each counts those before it.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('flagledger invitations ' || lower($1), 0))`, email); err != nil {
			return err
		}
		noted, err := tx.Exec(ctx, `insert into keep.mailed_invitations (job, email, mailed_at)
			select $1, $2, $3
			where (select count(*) from keep.mailed_invitations where lower(email) = lower($2) and mailed_at > $4 and job <> $1) < $5
			on conflict (job) do update set mailed_at = excluded.mailed_at`, job, email, now, now.Add(-invitationWindow), maxInvitations)
		may = noted.RowsAffected() > 0
		return err
	})
	return may, databaseError(err)
}
