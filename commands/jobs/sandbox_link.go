package jobs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"flagledger/commands"
	"flagledger/commands/mail"
	"flagledger/commands/sandbox"
)

// sandboxLink mails a requested link that creates an account and a sandbox.
type sandboxLink struct {
	RequestID string `json:"requestId" river:"unique"`
}

// Kind implements river.JobArgs.
func (sandboxLink) Kind() string { return "mail.sandbox_link" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (sandboxLink) InsertOpts() river.InsertOpts { return oncePerCause(mailQueue, mailAttempts) }

func (sandboxLink) tenant() string { return "" }

// sandboxLinkTTL is how long a sandbox link is valid and its address is stored.
const sandboxLinkTTL = 3 * 24 * time.Hour

const (
	maxSandboxLinks   = 10 // unused requests with an address within sandboxLinkWindow
	sandboxLinkWindow = 24 * time.Hour
)

// QueueSandboxLink mails a sandbox link, once for each address and minute and ten times within a day. Further requests
// do nothing, because earlier links are valid for longer.
//
// It does the same for every address. Errors are *commands.Error, Unavailable if the database cannot be reached.
func (l *Links) QueueSandboxLink(ctx context.Context, email, name string, now time.Time) error {
	return mailError(pgx.BeginFunc(ctx, l.client.pool, func(tx pgx.Tx) error {
		var id string
		at := now.Truncate(time.Minute)
		err := tx.QueryRow(ctx, `insert into keep.sandbox_requests (id, email, name, asked_at, expires_at)
			select $1, $2, $3, $4, $5
			where (select count(*) from keep.sandbox_requests where lower(email collate "C") = lower($2 collate "C")
				and asked_at > $6 and asked_at <> $4) < $7
			on conflict (lower(email collate "C"), asked_at) do update set name = excluded.name returning id::text`,
			uuid.New(), email, name, at, now.Add(sandboxLinkTTL), at.Add(-sandboxLinkWindow), maxSandboxLinks).
			Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) { // too many
			return nil
		}
		if err != nil {
			return err
		}
		return l.client.Add(ctx, tx, sandboxLink{RequestID: id})
	}))
}

// FindSandboxRequest returns the request of a link's token. It returns Invalid in the field token if the link is not
// valid.
func (l *Links) FindSandboxRequest(
	ctx context.Context, token string, now time.Time,
) (r sandbox.Request, err error) {
	hash := sha256.Sum256([]byte(token))
	err = l.client.pool.QueryRow(ctx, `select id::text, email, name from keep.sandbox_requests
		where hashes @> array[$1::bytea] and expires_at > $2`, hash[:], now).
		Scan(&r.ID, &r.Email, &r.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, commands.InvalidLink()
	}
	return r, mailError(err)
}

// RemoveSandboxRequest deletes a request for a sandbox, which uses up its links.
func (l *Links) RemoveSandboxRequest(ctx context.Context, requestID string) error {
	_, err := l.client.pool.Exec(ctx, `delete from keep.sandbox_requests where id = $1`, requestID)
	return mailError(err)
}

// mailSandboxLink mails a link. Earlier attempts' links, which may have arrived, stay valid. It does nothing for an
// erased or expired request.
func (m mailJobs) mailSandboxLink(ctx context.Context, request string, job *rivertype.JobRow) error {
	token := rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(token))
	var email string
	err := m.pool.QueryRow(ctx, `update keep.sandbox_requests set hashes = hashes || $2::bytea where id = $1
		and expires_at > $3 returning email`, request, hash[:], m.Now()).
		Scan(&email)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return mailError(err)
	}
	return m.sendLimited(ctx, job, forSandbox, mail.SandboxLink(email, m.PublicURL, token))
}
