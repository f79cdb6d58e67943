package local

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
	"flagledger/commands/mail"
)

// purpose says what a mailed link does.
type purpose string

const (
	reset  purpose = "reset"
	verify purpose = "verify"
)

const (
	resetTTL        = time.Hour
	verificationTTL = 3 * 24 * time.Hour
	mailInterval    = time.Minute // minimum between mails to one person for one purpose
)

// ForgotPassword mails a link that sets a new password, at most one a minute, if the address is known.
func (p *Provider) ForgotPassword(ctx context.Context, email string) error {
	address, ok := commands.ParseEmail(email)
	if !ok {
		return nil
	}
	return p.o.Links.QueueReset(ctx, address, p.now())
}

// MailResetLink implements jobs.LinkMailer.
func (p *Provider) MailResetLink(ctx context.Context, email string, job int64) error {
	var who person
	err := p.pool.QueryRow(ctx, `
		select user_id, email from keep.people join keep.passwords using (user_id)
			where lower(email collate "C") = lower($1 collate "C")`, email).Scan(&who.userID, &who.email)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return databaseError("look up an account", err)
	}
	token, err := p.issueLink(ctx, reset, resetTTL, who.userID, job)
	if err != nil || token == "" {
		return databaseError("note a link", err)
	}
	return p.o.Mailer.Send(ctx, mail.ResetLink(who.email, p.o.Issuer, token))
}

// MailVerificationLink implements jobs.LinkMailer.
func (p *Provider) MailVerificationLink(ctx context.Context, userID string, job int64) error {
	var email string
	err := p.pool.QueryRow(ctx, `
		select email from keep.people join keep.passwords using (user_id) where user_id = $1 and email is not null
			and not email_verified`, userID).Scan(&email)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return databaseError("look up an account", err)
	}
	token, err := p.issueLink(ctx, verify, verificationTTL, userID, job)
	if err != nil || token == "" {
		return databaseError("note a link", err)
	}
	return p.o.Mailer.Send(ctx, mail.VerificationLink(email, p.o.Issuer, token))
}

// issueLink creates a link's token in place of that of the job's earlier attempt, and stores only its SHA-256. The
// token is empty if another job mailed a link within the last minute.
func (p *Provider) issueLink(
	ctx context.Context, to purpose, ttl time.Duration, userID string, job int64,
) (token string, err error) {
	now := p.now()
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		// The second of two jobs for a person sees the token of the first.
		if _, err := tx.Exec(
			ctx, `select pg_advisory_xact_lock(hashtextextended('flagledger link ' || $1, 0))`, userID,
		); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from keep.mailed_tokens where user_id = $1 and job = $2`, userID, job); err != nil {
			return err
		}
		fresh := newToken()
		made, err := tx.Exec(ctx, `
			insert into keep.mailed_tokens (hash, purpose, user_id, issued_at, expires_at, job)
			select $1::bytea, $2::text, $3::text, $4::timestamptz, $5::timestamptz, $7::bigint
			where not exists (select from keep.mailed_tokens where user_id = $3 and purpose = $2 and issued_at > $6)`,
			sum(fresh), to, userID, now, now.Add(ttl), now.Add(-mailInterval), job)
		if err == nil && made.RowsAffected() > 0 {
			token = fresh
		}
		return err
	})
	return token, err
}
