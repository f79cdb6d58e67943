package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"flagledger/commands"
	"flagledger/commands/keep"
	"flagledger/commands/mail"
	"flagledger/commands/notify"
	"flagledger/commands/people"
	"flagledger/commands/writer"
)

// sandboxNotice mails an admin that a sandbox ends or is deleted.
type sandboxNotice struct {
	TenantID string               `json:"tenantId" river:"unique"`
	UserID   string               `json:"userId" river:"unique"`
	Notice   notify.SandboxNotice `json:"notice" river:"unique"`
	EndsAt   time.Time            `json:"endsAt" river:"unique"`
}

// Kind implements river.JobArgs.
func (sandboxNotice) Kind() string { return "mail.sandbox_notice" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (sandboxNotice) InsertOpts() river.InsertOpts { return oncePerCause(mailQueue, mailAttempts) }

func (j sandboxNotice) tenant() string { return j.TenantID }

// SandboxNotices owns the table sandbox_notices. It is in this package because a notice is recorded in the transaction
// that queues its mail.
type SandboxNotices struct{ client *Client }

// NewSandboxNotices returns the notices in a client's database; the client mails them.
func NewSandboxNotices(c *Client) *SandboxNotices { return &SandboxNotices{c} }

// Given implements notify.SandboxNotices.
func (s *SandboxNotices) Given(ctx context.Context) ([]notify.SandboxNoticeGiven, error) {
	rows, err := s.client.pool.Query(ctx,
		`select tenant_id, notice, ends_at, given_at from keep.sandbox_notices order by given_at`)
	if err != nil {
		return nil, noticeError(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[notify.SandboxNoticeGiven])
	return list, noticeError(err)
}

// Give implements notify.SandboxNotices.
func (s *SandboxNotices) Give(ctx context.Context, n notify.SandboxNoticeGiven, userIDs []string) error {
	return noticeError(pgx.BeginFunc(ctx, s.client.pool, func(tx pgx.Tx) error {
		noted, err := tx.Exec(
			ctx,
			`insert into keep.sandbox_notices (tenant_id, notice, ends_at, given_at) values ($1, $2, $3, $4)
				on conflict do nothing`,
			n.TenantID,
			n.Notice,
			n.EndsAt,
			n.GivenAt,
		)
		if err != nil || noted.RowsAffected() == 0 {
			return err
		}
		list := make([]Job, len(userIDs))
		for i, id := range userIDs {
			list[i] = sandboxNotice{TenantID: n.TenantID, UserID: id, Notice: n.Notice, EndsAt: n.EndsAt}
		}
		return s.client.Add(ctx, tx, list...)
	}))
}

// Drop implements notify.SandboxNotices.
func (s *SandboxNotices) Drop(ctx context.Context, n notify.SandboxNoticeGiven) error {
	_, err := s.client.pool.Exec(ctx,
		`delete from keep.sandbox_notices where tenant_id = $1 and notice = $2 and ends_at = $3`, n.TenantID, n.Notice,
		n.EndsAt)
	return noticeError(err)
}

// Forget implements notify.SandboxNotices.
func (s *SandboxNotices) Forget(ctx context.Context, tenantID string) error {
	_, err := s.client.pool.Exec(ctx, `delete from keep.sandbox_notices where tenant_id = $1`, tenantID)
	return noticeError(err)
}

// mailSandboxNotice does nothing if the sandbox's end has changed, or if the person is not an admin any more, was
// erased, or has not confirmed the membership.
func (m mailJobs) mailSandboxNotice(ctx context.Context, job sandboxNotice) error {
	tenant, err := writer.ReadTenant(ctx, m.Writer, job.TenantID)
	if err != nil {
		return err
	}
	ends := tenant.Subscription.SandboxEnd(tenant.SandboxEndsAt)
	if !tenant.Exists || !ends.Equal(job.EndsAt) || !slices.Contains(commands.Admins(&tenant), job.UserID) {
		return nil
	}
	if confirmed, err := people.HasConfirmed(ctx, m.Directory, tenant, job.UserID); err != nil || !confirmed {
		return err
	}
	email, err := m.Directory.Email(ctx, job.UserID)
	if err != nil || email == "" {
		return err
	}
	return cancelRefused(m.Mailer.Send(ctx, mail.SandboxNotice(email, m.PublicURL, tenant.Name, job.Notice, job.EndsAt)))
}

func noticeError(err error) error {
	return keep.DatabaseError("notices cannot be noted at this moment", err)
}
