package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
	"flagledger/commands/mail"
)

// Mails are the jobs that send mails, and what they need.
type Mails struct {
	Mailer    commands.Mailer
	Links     LinkMailer
	Writer    *commands.Writer
	Directory *directory.Directory
	PublicURL string
	Now       func() time.Time

	pool *pgxpool.Pool
	log  *slog.Logger
}

func (m *Mails) addWorkers(workers *river.Workers, pool *pgxpool.Pool, log *slog.Logger) {
	m.pool, m.log = pool, log
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[MemberInvitation]) error {
		return m.inviteMember(ctx, job.ID, job.Args)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[PlatformInvitation]) error {
		return m.inviteToPlatform(ctx, job.ID, job.Args)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[verificationLink]) error {
		return giveUpRefused(m.Links.MailVerificationLink(ctx, job.Args.UserID, job.ID))
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[resetLink]) error {
		return m.mailResetLink(ctx, job.Args.RequestID, job.ID)
	}))
}

// inviteMember does nothing for somebody who has joined, was removed or has been erased meanwhile.
func (m *Mails) inviteMember(ctx context.Context, id int64, job MemberInvitation) error {
	tenant, err := commands.ReadTenant(ctx, m.Writer, job.TenantID)
	if err != nil {
		return err
	}
	member, invited := tenant.Members[job.MemberID]
	if !tenant.Exists || !invited || !member.Pending {
		return nil
	}
	profile, err := m.Directory.Profile(ctx, job.TenantID, job.MemberID)
	if err != nil || profile.Email == "" {
		return err
	}
	return m.invite(ctx, id, mail.MemberInvitation(profile.Email, m.PublicURL, tenant.Name, member.Role))
}

// inviteToPlatform does nothing for an invitation that was accepted or revoked, has expired or has been erased meanwhile.
func (m *Mails) inviteToPlatform(ctx context.Context, id int64, job PlatformInvitation) error {
	invitation, err := commands.ReadInvitation(ctx, m.Writer, job.InvitationID)
	if err != nil {
		return err
	}
	if invitation.ID == "" || invitation.Status(m.Now()) != "pending" {
		return nil
	}
	email, err := m.Directory.InvitationEmail(ctx, job.InvitationID)
	if err != nil || email == "" {
		return err
	}
	return m.invite(ctx, id, mail.PlatformInvitation(email, m.PublicURL, invitation))
}

// invite sends an invitation, unless its address has got too many of late.
func (m *Mails) invite(ctx context.Context, job int64, message commands.Mail) error {
	may, err := m.mayInvite(ctx, job, message.To)
	if err != nil {
		return err
	}
	if !may {
		m.log.WarnContext(ctx, "an invitation is not mailed: its address has got too many within the hour", "job", job)
		return nil
	}
	return giveUpRefused(m.Mailer.Send(ctx, message))
}

// giveUpRefused ends a job whose mail was refused for good.
func giveUpRefused(err error) error {
	if errors.Is(err, commands.ErrMailRefused) {
		return river.JobCancel(err)
	}
	return err
}
