package local

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
	"flagledger/commands/people"
)

const refreshTTL = 30 * 24 * time.Hour

// session is a sign-in. Its refresh tokens form a family: all but the last have been used.
type session struct {
	id       string // a UUID, also the family's
	userID   string
	authTime time.Time // the sign-in; each refresh token carries it as issued_at
}

// Refresh exchanges a refresh token for a new one and an ID token of the same session with the person's current
// address and name. A token used twice was stolen, so it ends the session.
func (p *Provider) Refresh(
	ctx context.Context, refreshToken string, mayContinue func(people.Claims) error,
) (people.Session, error) {
	if !hasTokenLength(refreshToken) {
		return people.Session{}, refuse("the refresh token is not valid")
	}
	kept := sum(refreshToken)
	var s session
	var who person
	find := func(tx pgx.Tx) (err error) {
		s, who, err = p.refreshable(ctx, tx, kept)
		return err
	}
	var next string
	rotate := func(tx pgx.Tx) error {
		if err := find(tx); err != nil {
			return err
		}
		now := p.now()
		if _, err := tx.Exec(ctx, `update keep.refresh_tokens set used_at = $2 where hash = $1`, kept, now); err != nil {
			return err
		}
		var err error
		next, err = grant(ctx, tx, s, now)
		return err
	}
	err := pgx.BeginFunc(ctx, p.pool, find)
	if err == nil {
		if err := mayContinue(p.claimsOf(who, s)); err != nil {
			return people.Session{}, err
		}
		err = pgx.BeginFunc(ctx, p.pool, rotate)
	}
	if err != nil {
		return people.Session{}, databaseError("refresh a session", err)
	}
	return p.signedIn(who, s, next)
}

// refreshable returns the session and the person of a usable refresh token, and locks both until tx ends.
func (p *Provider) refreshable(ctx context.Context, tx pgx.Tx, kept []byte) (s session, who person, err error) {
	err = tx.QueryRow(ctx, `select user_id, session_id from keep.refresh_tokens where hash = $1`, kept).
		Scan(&s.userID, &s.id)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, who, refuse("the refresh token is not valid")
	}
	if err != nil {
		return s, who, err
	}
	if who, err = p.personOf(ctx, tx, s.userID); err != nil {
		return s, who, err
	}
	if err := lock(ctx, tx, s); err != nil {
		return s, who, err
	}
	var expires time.Time
	var used *time.Time
	err = tx.QueryRow(ctx, `select issued_at, expires_at, used_at from keep.refresh_tokens where hash = $1 for update`, kept).
		Scan(&s.authTime, &expires, &used)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = refuse("the refresh token is not valid")
	case err == nil && used != nil:
		err = &people.ReusedTokenError{UserID: s.userID, SessionID: s.id}
	case err == nil && !p.now().Before(expires):
		err = refuse("the refresh token has expired")
	}
	return s, who, err
}

// Revoke ends a session's refresh tokens. It ignores an unknown session.
func (p *Provider) Revoke(ctx context.Context, userID, sessionID string) error {
	s := session{id: sessionID, userID: userID}
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if err := lock(ctx, tx, s); err != nil {
			return err
		}
		return end(ctx, tx, s)
	})
	return databaseError("end a session", err)
}

// EndSessions ends all refresh tokens and mailed links of a person. Later sessions are dated after the ended ones, as
// after a password change.
func (p *Provider) EndSessions(ctx context.Context, userID string, at time.Time) (commands.EndSessions, error) {
	ends := commands.EndSessions{UserID: userID, Before: at.UTC().Truncate(time.Second).Add(time.Second)}
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		// This waits for concurrent sign-ins and refreshes, whose tokens are deleted next.
		err := tx.QueryRow(ctx, `select true from keep.passwords where user_id = $1 for update`, userID).Scan(new(bool))
		if err == nil {
			err = tx.QueryRow(ctx, `
				update keep.passwords set changing_until = null, sessions_from = greatest($2, sessions_from,
					(select date_trunc('second', max(issued_at)) + interval '1 second' from keep.refresh_tokens where user_id = $1))
				where user_id = $1 returning sessions_from`, userID, ends.Before).Scan(&ends.Before)
		}
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		for _, statement := range []string{`delete from keep.refresh_tokens where user_id = $1`, `delete
			from keep.mailed_tokens where user_id = $1`} {
			if _, err := tx.Exec(ctx, statement, userID); err != nil {
				return err
			}
		}
		return nil
	})
	return ends, databaseError("end the sessions of a person", err)
}

// lock serializes transactions that change a session. Row locks are not enough: ending a session does not see the
// token that a concurrent refresh is about to add.
func lock(ctx context.Context, tx pgx.Tx, s session) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('flagledger session ' || $1, 0))`, s.id)
	return err
}

func end(ctx context.Context, tx pgx.Tx, s session) error {
	_, err := tx.Exec(ctx, `delete from keep.refresh_tokens where user_id = $1 and session_id = $2`, s.userID, s.id)
	return err
}

// grant adds a refresh token to a session. Only its SHA-256 is stored.
func grant(ctx context.Context, tx pgx.Tx, s session, now time.Time) (string, error) {
	text := newToken()
	_, err := tx.Exec(ctx, `
		insert into keep.refresh_tokens (hash, family, user_id, session_id, issued_at, expires_at)
		values ($1, $2::text::uuid, $3, $2::text, $4, $5)`, sum(text), s.id, s.userID, s.authTime, now.Add(refreshTTL))
	return text, err
}
