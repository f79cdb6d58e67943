package local

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
	"flagledger/commands/people"
)

// A password is changed in two short transactions, so that nothing is locked while the event store records the ended
// sessions. prepareChange records from when on sessions belong to the new password, and setPassword sets it. SignIn
// dates sessions in between so that they end too.

// changeTime limits the time between preparing and setting a password, by the database's clock. A later change fails.
const changeTime = 10 * time.Second

// PrepareReset checks the token of a mailed link, and a new password. Setting the password also verifies the address,
// because the person reads its mails. It does not if addresses are assumed to be verified: the account's existing data
// would have to be deleted.
func (p *Provider) PrepareReset(ctx context.Context, token, password string) (people.PasswordChange, error) {
	userID, verified := "", false
	if hasTokenLength(token) {
		err := p.pool.QueryRow(ctx, `select user_id, email_verified from keep.mailed_tokens t join keep.people using (user_id)
			where t.hash = $1 and purpose = $2 and t.expires_at > $3`, sum(token), reset, p.now()).Scan(&userID, &verified)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return people.PasswordChange{}, databaseError("look up a link", err)
		}
	}
	var wrong map[string]string
	if userID == "" {
		wrong = commands.InvalidLink().Fields
	}
	if err := commands.MergeFieldErrors(wrong, people.CheckNewPassword(password)); err != nil {
		return people.PasswordChange{}, err
	}
	var kept string
	if err := p.o.Hash(ctx, func() { kept = hash(password, p.o.HashMemory).String() }); err != nil {
		return people.PasswordChange{}, err
	}
	ends, err := p.prepareChange(
		ctx,
		commands.EndSessions{UserID: userID},
		`select true from keep.mailed_tokens where hash = $1 and purpose = $2 and expires_at > $3`,
		sum(token),
		reset,
		p.now(),
	)
	if errors.Is(err, pgx.ErrNoRows) {
		return people.PasswordChange{}, commands.InvalidLink()
	}
	return people.PasswordChange{
		Ends:          ends,
		FirstVerifies: !verified && !p.o.AssumeEmailsVerified,
		Set: func(ctx context.Context) error {
			err := p.setPassword(ctx, ends, kept, func(tx pgx.Tx) error {
				used, err := tx.Exec(ctx, `delete from keep.mailed_tokens where hash = $1 and purpose = $2 and expires_at > $3`,
					sum(token), reset, p.now())
				if err == nil && used.RowsAffected() == 0 {
					err = commands.InvalidLink()
				}
				if err != nil || p.o.AssumeEmailsVerified {
					return err
				}
				return directory.VerifyByReset(ctx, tx, userID)
			})
			if errors.Is(err, pgx.ErrNoRows) {
				return commands.InvalidLink()
			}
			return databaseError("reset a password", err)
		},
	}, databaseError("prepare a password", err)
}

// PrepareUpdate checks the current password of a signed-in person and the new one.
func (p *Provider) PrepareUpdate(
	ctx context.Context, c people.Claims, current, password string,
) (people.PasswordChange, error) {
	wrong := refuse("the current password is wrong")
	if err := people.CheckPasswordChange(current, password); err != nil {
		return people.PasswordChange{}, err
	}
	var before string
	err := p.pool.QueryRow(ctx, `select hash from keep.people join keep.passwords using (user_id) where user_id = $1
		and email is not null`, c.UserID).
		Scan(&before)
	if errors.Is(err, pgx.ErrNoRows) || len(current) > commands.MaxPassword {
		return people.PasswordChange{}, wrong
	}
	if err != nil {
		return people.PasswordChange{}, databaseError("look up an account", err)
	}
	against, err := parse(before)
	if err != nil {
		return people.PasswordChange{}, &commands.Error{Detail: "read the password of " + c.UserID, Err: err}
	}
	var right bool
	var kept string
	err = p.o.Hash(ctx, func() {
		if right = against.matches(current); right {
			kept = hash(password, p.o.HashMemory).String()
		}
	})
	if err != nil {
		return people.PasswordChange{}, err
	}
	if !right {
		return people.PasswordChange{}, wrong
	}
	ends, err := p.prepareChange(ctx, commands.EndSessions{UserID: c.UserID, Except: c.SessionID},
		`select true from keep.passwords where user_id = $1 and hash = $2`, c.UserID, before)
	if errors.Is(err, pgx.ErrNoRows) { // changed meanwhile
		return people.PasswordChange{}, wrong
	}
	return people.PasswordChange{Ends: ends, Set: func(ctx context.Context) error {
		err := p.setPassword(ctx, ends, kept, nil)
		if errors.Is(err, pgx.ErrNoRows) {
			return wrong
		}
		return databaseError("change a password", err)
	}}, databaseError("prepare a password", err)
}

// prepareChange prepares a change of a person's password, in place of an earlier one, and returns the sessions that
// end. It returns pgx.ErrNoRows if the person has no password, or if another change was set meanwhile.
func (p *Provider) prepareChange(
	ctx context.Context, ends commands.EndSessions, still string, args ...any,
) (commands.EndSessions, error) {
	userID := ends.UserID
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		var found bool // waits for concurrent sign-ins, whose sessions end too
		if err := tx.QueryRow(ctx, `select true from keep.passwords where user_id = $1 for update`, userID).
			Scan(&found); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, still, args...).Scan(&found); err != nil {
			return err
		}
		// Sessions are dated in whole seconds. This second's sessions end too, also if the clock of their node
		// is ahead.
		return tx.QueryRow(ctx, `
			update keep.passwords set changing_until = clock_timestamp() + $3::interval, sessions_from = greatest($2,
				sessions_from + interval '1 second',
				(select date_trunc('second', max(issued_at)) + interval '1 second' from keep.refresh_tokens where user_id = $1))
			where user_id = $1 returning sessions_from`, userID, p.now().Truncate(time.Second).Add(time.Second), changeTime).Scan(&ends.Before)
	})
	return ends, err
}

// setPassword calls use, if not nil, and sets the password, in one transaction. It deletes the refresh tokens of
// ending sessions and all password links. It returns pgx.ErrNoRows if the account is gone.
func (p *Provider) setPassword(
	ctx context.Context, ends commands.EndSessions, hash string, use func(pgx.Tx) error,
) error {
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		// The time is read after the row is locked, so that this sees a session that began after the change expired.
		var found bool
		if err := tx.QueryRow(ctx, `select true from keep.passwords where user_id = $1 for update`, ends.UserID).
			Scan(&found); err != nil {
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
			return &commands.Error{
				Kind:   commands.Unavailable,
				Detail: "the password was not set in time, or is being changed by another request; try again",
			}
		}
		if _, err := tx.Exec(
			ctx, `delete from keep.refresh_tokens where user_id = $1 and session_id <> $2`, ends.UserID, ends.Except,
		); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `delete from keep.mailed_tokens where user_id = $1 and purpose = $2`, ends.UserID, reset)
		return err
	})
}
