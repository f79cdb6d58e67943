package jobs

import (
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Job is what is to be done. Its fields are stored and shown to operators, so they hold ids alone: addresses are looked up when the job is done, and may have
// been changed or erased meanwhile.
type Job interface {
	river.JobArgs
	// tenant is the id of the tenant that caused the job, empty where none did: jobs are shared out fairly between tenants.
	tenant() string
}

const (
	mailQueue = "mails"
	// mailAttempts take some eleven hours, resetAttempts an hour and a quarter: River waits for attempt^4 seconds after each.
	mailAttempts  = 12
	resetAttempts = 8
)

// byCause makes a job that is inserted twice for one cause, which the fields marked as unique tell, one job.
func byCause(attempts int) river.InsertOpts {
	return river.InsertOpts{Queue: mailQueue, MaxAttempts: attempts, UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

// unfinished are the states of a job that has not ended.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

// MemberInvitation mails somebody that a tenant waits for them.
type MemberInvitation struct {
	EventID  string `json:"eventId" river:"unique"`
	TenantID string `json:"tenantId"`
	MemberID string `json:"memberId"`
}

// PlatformInvitation mails somebody that they were invited to a role on the platform.
type PlatformInvitation struct {
	EventID      string `json:"eventId" river:"unique"`
	InvitationID string `json:"invitationId"`
}

// verificationLink mails a link that verifies a person's address.
type verificationLink struct {
	UserID string `json:"userId" river:"unique"`
	Cause  string `json:"cause" river:"unique"` // an id, as of the request for it
}

// resetLink mails a link that sets a new password.
type resetLink struct {
	RequestID string `json:"requestId" river:"unique"`
}

// Kind implements river.JobArgs. Kinds are stored, and stay as they are.
func (MemberInvitation) Kind() string { return "mail.member_invitation" }

// Kind implements river.JobArgs.
func (PlatformInvitation) Kind() string { return "mail.platform_invitation" }

// Kind implements river.JobArgs.
func (verificationLink) Kind() string { return "mail.verification_link" }

// Kind implements river.JobArgs.
func (resetLink) Kind() string { return "mail.reset_link" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (MemberInvitation) InsertOpts() river.InsertOpts { return byCause(mailAttempts) }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (PlatformInvitation) InsertOpts() river.InsertOpts { return byCause(mailAttempts) }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (verificationLink) InsertOpts() river.InsertOpts { return byCause(mailAttempts) }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (resetLink) InsertOpts() river.InsertOpts { return byCause(resetAttempts) }

func (j MemberInvitation) tenant() string { return j.TenantID }
func (PlatformInvitation) tenant() string { return "" }
func (verificationLink) tenant() string   { return "" }
func (resetLink) tenant() string          { return "" }
