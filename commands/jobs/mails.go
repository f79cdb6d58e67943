package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"flagledger/commands"
	"flagledger/commands/keep/directory"
	"flagledger/commands/mail"
)

// Mails are what mails are made of and sent with.
type Mails struct {
	Mailer    commands.Mailer
	Writer    *commands.Writer
	Directory *directory.Directory
	PublicURL string
	Now       func() time.Time // time.Now where nil

	recent recentMails
	log    *slog.Logger
}

func (m *Mails) addWorkers(workers *river.Workers, log *slog.Logger) {
	m.log = log
	if m.Now == nil {
		m.Now = time.Now
	}
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[MemberInvitation]) error {
		return m.inviteMember(ctx, job.Args)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[PlatformInvitation]) error {
		return m.inviteToPlatform(ctx, job.Args)
	}))
}

// inviteMember does nothing for who has joined, was removed or has been erased meanwhile.
func (m *Mails) inviteMember(ctx context.Context, job MemberInvitation) error {
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
	return m.invite(ctx, mail.MemberInvitation(profile.Email, m.PublicURL, tenant.Name, member.Role))
}

// inviteToPlatform does nothing for an invitation that was accepted or revoked, has expired or has been erased meanwhile.
func (m *Mails) inviteToPlatform(ctx context.Context, job PlatformInvitation) error {
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
	return m.invite(ctx, mail.PlatformInvitation(email, m.PublicURL, invitation))
}

// invite sends an invitation, unless its address has got too many of late.
func (m *Mails) invite(ctx context.Context, message commands.Mail) error {
	giveBack, ok := m.recent.take(message.To, m.Now())
	if !ok {
		m.log.WarnContext(ctx, "an invitation is not mailed: its address has got too many within the hour")
		return nil
	}
	err := send(ctx, m.Mailer, message)
	if err != nil {
		giveBack()
	}
	return err
}

// send gives up a mail that is refused for good.
func send(ctx context.Context, mailer commands.Mailer, message commands.Mail) error {
	err := mailer.Send(ctx, message)
	if errors.Is(err, commands.ErrMailRefused) {
		return river.JobCancel(err)
	}
	return err
}
