package jobs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"flagledger/commands/keep/directory"
	"flagledger/commands/mail"
	"flagledger/commands/notify"
	"flagledger/commands/writer"
)

const (
	mailQueue    = "mails"
	mailAttempts = 12 // some eleven hours

	maxMails   = 5 // of a kind to an address within mailWindow
	mailWindow = time.Hour
	slotRetry  = 5 * time.Minute // of a job that waits for a slot
	slotWait   = 24 * time.Hour  // the longest wait for a slot
)

// Mails holds the dependencies of the jobs that send mails.
type Mails struct {
	Mailer    notify.Mailer
	Links     LinkMailer
	Writer    *writer.Writer
	Directory *directory.Directory
	PublicURL string
	Now       func() time.Time
}

// mailJobs works the jobs that send mails.
type mailJobs struct {
	*Mails
	pool    *pgxpool.Pool
	windows *Windows
}

func (m mailJobs) addWorkers(workers *river.Workers) {
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[MemberInvitation]) error {
		return m.mailMemberInvitation(ctx, job.JobRow, job.Args)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[PlatformInvitation]) error {
		return m.mailPlatformInvitation(ctx, job.JobRow, job.Args)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[verificationLink]) error {
		return cancelRefused(m.Links.MailVerificationLink(ctx, job.Args.UserID, job.ID))
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[resetLink]) error {
		return m.mailResetLink(ctx, job.Args.RequestID, job.ID)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[sandboxLink]) error {
		return m.mailSandboxLink(ctx, job.Args.RequestID, job.JobRow)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[sandboxNotice]) error {
		return m.mailSandboxNotice(ctx, job.Args)
	}))
}

// MemberInvitation mails a pending member their invitation to a tenant.
type MemberInvitation struct {
	EventID  string `json:"eventId" river:"unique"`
	TenantID string `json:"tenantId"`
	MemberID string `json:"memberId"`
}

// PlatformInvitation mails a person their invitation to a platform role.
type PlatformInvitation struct {
	EventID      string `json:"eventId" river:"unique"`
	InvitationID string `json:"invitationId"`
}

// Kind implements river.JobArgs. Kinds are stored, so they never change.
func (MemberInvitation) Kind() string { return "mail.member_invitation" }

// Kind implements river.JobArgs.
func (PlatformInvitation) Kind() string { return "mail.platform_invitation" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (MemberInvitation) InsertOpts() river.InsertOpts { return oncePerCause(mailQueue, mailAttempts) }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (PlatformInvitation) InsertOpts() river.InsertOpts { return oncePerCause(mailQueue, mailAttempts) }

func (j MemberInvitation) tenant() string { return j.TenantID }
func (PlatformInvitation) tenant() string { return "" }

// mailMemberInvitation mails an invitation, unless the person has joined, was removed or has been erased meanwhile.
func (m mailJobs) mailMemberInvitation(ctx context.Context, job *rivertype.JobRow, args MemberInvitation) error {
	tenant, err := writer.ReadTenant(ctx, m.Writer, args.TenantID)
	if err != nil {
		return err
	}
	member, invited := tenant.Members[args.MemberID]
	if !tenant.Exists || !invited || !member.Pending {
		return nil
	}
	profile, err := m.Directory.Profile(ctx, args.TenantID, args.MemberID)
	if err != nil || profile.Email == "" {
		return err
	}
	return m.sendLimited(ctx, job, forInvitation, mail.MemberInvitation(profile.Email, m.PublicURL, tenant.Name, member))
}

// mailPlatformInvitation mails an invitation, unless it was accepted or revoked, has expired or has been erased
// meanwhile.
func (m mailJobs) mailPlatformInvitation(ctx context.Context, job *rivertype.JobRow, args PlatformInvitation) error {
	invitation, err := writer.ReadInvitation(ctx, m.Writer, args.InvitationID)
	if err != nil {
		return err
	}
	if invitation.ID == "" || invitation.Status(m.Now()) != "pending" {
		return nil
	}
	email, err := m.Directory.InvitationEmail(ctx, args.InvitationID)
	if err != nil || email == "" {
		return err
	}
	return m.sendLimited(ctx, job, forInvitation, mail.PlatformInvitation(email, m.PublicURL, invitation))
}

var errNoSlotInTime = errors.New("the address received the most mails of this kind in every hour of a day")

// sendLimited sends an invitation or a sandbox link. If its address received too many, the job waits for a slot, at
// most a day.
func (m mailJobs) sendLimited(ctx context.Context, job *rivertype.JobRow, kind string, message notify.Mail) error {
	holder := strconv.FormatInt(job.ID, 10)
	full, err := m.windows.Take(ctx, m.Now(), holder, mailsTo(message.To, kind))
	switch {
	case err != nil:
		return err
	case full != nil && m.Now().Sub(job.CreatedAt) < slotWait:
		return river.JobSnooze(slotRetry)
	case full != nil:
		return river.JobCancel(errNoSlotInTime)
	}
	if err := m.Mailer.Send(ctx, message); err != nil {
		return cancelRefused(errors.Join(err, m.windows.GiveBack(ctx, holder)))
	}
	return nil
}

// cancelRefused cancels a job whose recipient is refused for good.
func cancelRefused(err error) error {
	if errors.Is(err, notify.ErrRecipientRefused) {
		return river.JobCancel(err)
	}
	return err
}
