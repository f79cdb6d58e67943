package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"flagledger/commands"
	"flagledger/commands/keep"
	"flagledger/events"
)

// Links queues mails with links: of the identity provider, and to sandboxes. It owns the tables of
// requested addresses: reset_requests and sandbox_requests.
type Links struct{ client *Client }

// NewLinks returns links that are mailed as jobs of a client.
func NewLinks(c *Client) *Links { return &Links{c} }

// LinkMailer is an identity provider that creates and mails links. Each call is an attempt of a job, and deletes the
// link of the attempt before.
type LinkMailer interface {
	// MailVerificationLink mails a person a link that verifies their address. It does nothing if the person is gone or
	// the address verified.
	MailVerificationLink(ctx context.Context, userID string, jobID int64) error
	// MailResetLink mails a link that sets a new password. It does nothing for an address without an account.
	MailResetLink(ctx context.Context, email string, jobID int64) error
}

// verificationLink mails a link that verifies a person's address.
type verificationLink struct {
	UserID string `json:"userId" river:"unique"`
	Cause  string `json:"cause" river:"unique"` // an id, such as the request's
}

const resetAttempts = 8 // an hour and a quarter

// resetLink mails a link that sets a new password.
type resetLink struct {
	RequestID string `json:"requestId" river:"unique"`
}

// Kind implements river.JobArgs.
func (verificationLink) Kind() string { return "mail.verification_link" }

// Kind implements river.JobArgs.
func (resetLink) Kind() string { return "mail.reset_link" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (verificationLink) InsertOpts() river.InsertOpts { return oncePerCause(mailQueue, mailAttempts) }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (resetLink) InsertOpts() river.InsertOpts { return oncePerCause(mailQueue, resetAttempts) }

func (verificationLink) tenant() string { return "" }
func (resetLink) tenant() string        { return "" }

// QueueVerificationTx mails a person a link that verifies their address once tx is committed. It does so once per
// cause: the account's id for the sign-up, the request's id for another link.
func (l *Links) QueueVerificationTx(ctx context.Context, tx pgx.Tx, userID, cause string) error {
	return l.client.Add(ctx, tx, verificationLink{UserID: userID, Cause: cause})
}

// QueueVerification works like QueueVerificationTx in its own transaction. Errors are *commands.Error, Unavailable if
// the database cannot be reached.
func (l *Links) QueueVerification(ctx context.Context, userID, cause string) error {
	return mailError(
		pgx.BeginFunc(ctx, l.client.pool, func(tx pgx.Tx) error { return l.QueueVerificationTx(ctx, tx, userID, cause) }),
	)
}

const (
	// verificationInterval is the minimum between two of a person's requests for a verification link.
	verificationInterval = time.Minute
	maxVerifications     = 5            // links within verificationWindow, including the sign-up's
	verificationWindow   = keptComplete // the retention of completed jobs, which are counted
)

// QueueFurtherVerification works like QueueVerification for a person who requests another link. It returns TooMany if
// they asked within the last minute, or five times within a day.
func (l *Links) QueueFurtherVerification(ctx context.Context, userID, cause string) error {
	return mailError(pgx.BeginFunc(ctx, l.client.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(
			ctx, `select pg_advisory_xact_lock(hashtextextended('flagledger verification ' || $1, 0))`, userID,
		); err != nil {
			return err
		}
		var asked int
		var lately bool
		err := tx.QueryRow(ctx, `select count(*), coalesce(max(created_at) > now() - $3::interval, false) from jobs.river_job
			where kind = $4 and args @> jsonb_build_object('userId', $1::text) and args ->> 'cause' <> $2
				and created_at > now() - $5::interval`,
			userID, cause, verificationInterval, verificationLink{}.Kind(), verificationWindow).Scan(&asked, &lately)
		switch {
		case err != nil:
			return err
		case lately:
			return &commands.Error{
				Kind:   commands.TooMany,
				Detail: "a link was asked for within the last " + events.PeriodText(verificationInterval),
			}
		case asked >= maxVerifications:
			return &commands.Error{
				Kind: commands.TooMany,
				Detail: fmt.Sprintf("%d links were asked for within %s, the most that are mailed", asked,
					events.PeriodText(verificationWindow)),
			}
		}
		return l.QueueVerificationTx(ctx, tx, userID, cause)
	}))
}

const (
	// requestsKept is how long a request for a password link is stored and counted: longer than all attempts to mail
	// it.
	requestsKept = 24 * time.Hour
	maxResets    = 5 // links to an address within requestsKept, before resetInterval applies
	// resetInterval is the minimum between further links. It is a link's validity, so that the address always gets a
	// valid one.
	resetInterval = time.Hour
)

// QueueReset mails a link that sets a new password: once for each address and minute, and after five within a day once
// an hour.
//
// It does the same for every address; the job looks up the account. Errors are *commands.Error, Unavailable if the
// database cannot be reached.
func (l *Links) QueueReset(ctx context.Context, email string, now time.Time) error {
	return mailError(pgx.BeginFunc(ctx, l.client.pool, func(tx pgx.Tx) error {
		var id string
		at := now.Truncate(time.Minute)
		err := tx.QueryRow(ctx, `insert into keep.reset_requests (id, email, asked_at) select $1, $2, $3
			where (select count(*) < $5 or max(asked_at) <= $6 from keep.reset_requests
				where lower(email collate "C") = lower($2 collate "C") and asked_at > $4 and asked_at <> $3)
			on conflict (lower(email collate "C"), asked_at) do update set asked_at = excluded.asked_at returning id::text`,
			uuid.New(), email, at, at.Add(-requestsKept), maxResets, at.Add(-resetInterval)).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) { // too many
			return nil
		}
		if err != nil {
			return err
		}
		return l.client.Add(ctx, tx, resetLink{RequestID: id})
	}))
}

// RemoveOld deletes requested addresses after a day, and addresses of sandboxes once their link has expired.
func (l *Links) RemoveOld(ctx context.Context, now time.Time) error {
	_, err := l.client.pool.Exec(ctx, `with expired as (delete from keep.sandbox_requests where expires_at <= $2)
		delete from keep.reset_requests where asked_at <= $1`, now.Add(-requestsKept), now)
	return mailError(err)
}

// Knows implements people.PersonalData. A requested address does not make a person known.
func (l *Links) Knows(context.Context, string) (bool, error) { return false, nil }

// Erase implements people.PersonalData. It deletes the requests with a person's address, which must still be in the
// directory.
func (l *Links) Erase(ctx context.Context, userID string) error {
	_, err := l.client.pool.Exec(
		ctx,
		`with person as (select lower(email collate "C") as email from keep.people where user_id = $1),
			sandboxes as (delete from keep.sandbox_requests where lower(email collate "C") = (select email from person))
		delete from keep.reset_requests where lower(email collate "C") = (select email from person)`,
		userID,
	)
	return mailError(err)
}

func (m mailJobs) mailResetLink(ctx context.Context, requestID string, jobID int64) error {
	var email string
	err := m.pool.QueryRow(ctx, `select email from keep.reset_requests where id = $1`, requestID).Scan(&email)
	if errors.Is(err, pgx.ErrNoRows) { // erased
		return nil
	}
	if err != nil {
		return err
	}
	return cancelRefused(m.Links.MailResetLink(ctx, email, jobID))
}

func mailError(err error) error {
	return keep.DatabaseError("mails cannot be noted at this moment", err)
}
