package local

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
)

// A password is changed in two short transactions, between which the event store is told which sessions end: nothing is locked meanwhile. The
// first notes from when on sessions are those of the new password, and until when it may be set. A session that begins in between with the old
// password is dated before that, as SignIn sees to, and so is among those that end. What was prepared and not set runs out by itself, and
// changes nothing.

// changeTime is how long a new password may be set after it was prepared, as the clock of the database has it.
const changeTime = 10 * time.Second

// prepareChange notes that a person's password is about to be changed, from before if that is given, and tells which sessions end with it: all but
// one. A change that was prepared earlier can not be made any more. The error is pgx.ErrNoRows where there is no such password.
func (p *Provider) prepareChange(ctx context.Context, userID, before, except string) (commands.EndSessions, error) {
	ends := commands.EndSessions{UserID: userID, Except: except}
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		var found bool // whoever signs in now is waited for, so that their session is seen next
		err := tx.QueryRow(ctx, `select true from keep.passwords where user_id = $1 and ($2 = '' or hash = $2) for update`, userID, before).Scan(&found)
		if err != nil {
			return err
		}
		// A session tells its beginning in whole seconds: those of this second end, as do those that a node began whose clock is ahead.
		return tx.QueryRow(ctx, `
			update keep.passwords set changing_until = clock_timestamp() + $3::interval, sessions_from = greatest($2, sessions_from + interval '1 second',
				(select date_trunc('second', max(issued_at)) + interval '1 second' from keep.refresh_tokens where user_id = $1))
			where user_id = $1 returning sessions_from`, userID, p.now().Truncate(time.Second).Add(time.Second), changeTime).Scan(&ends.Before)
	})
	return ends, err
}

// setPassword sets a password that was prepared and ends the refresh tokens of the sessions that end with the old one, and the links to a new password
// that there are. use is called before, in the same transaction; it may be nil. The error is pgx.ErrNoRows where there is no such account any more.
func (p *Provider) setPassword(ctx context.Context, ends commands.EndSessions, hash string, use func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		// The time is read once nobody else has the row: whoever began a session when it had run out is not overlooked.
		var found bool
		if err := tx.QueryRow(ctx, `select true from keep.passwords where user_id = $1 for update`, ends.UserID).Scan(&found); err != nil {
			return err
		}
		if use != nil {
			if err := use(tx); err != nil {
				return err
			}
		}
		set, err := tx.Exec(ctx, `
			update keep.passwords set hash = $3, changing_until = null
			where user_id = $1 and sessions_from = $2 and changing_until > clock_timestamp()`, ends.UserID, ends.Before, hash)
		if err != nil {
			return err
		}
		if set.RowsAffected() == 0 {
			return &commands.Error{Kind: commands.Unavailable, Detail: "the password was not set in time, or is being changed by another request; try again"}
		}
		if _, err := tx.Exec(ctx, `delete from keep.refresh_tokens where user_id = $1 and session_id <> $2`, ends.UserID, ends.Except); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `delete from keep.mailed_tokens where user_id = $1 and purpose = $2`, ends.UserID, reset)
		return err
	})
}
