package jobs

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"

	"flagledger/commands/notify"
)

// Notice notifies people of a fact. Details are looked up when the job runs.
type Notice struct {
	EventID      string `json:"eventId" river:"unique"`
	About        About  `json:"about" river:"unique"`
	TenantID     string `json:"tenantId,omitempty"`
	UserID       string `json:"userId,omitempty"`
	InvitationID string `json:"invitationId,omitempty"`
}

// About says what a notice is about. It is stored, so it never changes.
type About string

// Subjects of notices, with the fields that each sets.
const (
	MemberAdded                About = "member added"                 // TenantID, UserID
	RoleChanged                About = "role changed"                 // TenantID, UserID
	InvitationAccepted         About = "invitation accepted"          // TenantID, UserID of the person who accepted it
	PlatformInvitationAccepted About = "platform invitation accepted" // InvitationID
	PaymentFailed              About = "payment failed"               // TenantID
)

const (
	noticeQueue    = "notices"
	noticeWorkers  = 2 // on each node
	noticeAttempts = 12
)

// Kind implements river.JobArgs.
func (Notice) Kind() string { return "notice" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (Notice) InsertOpts() river.InsertOpts { return oncePerCause(noticeQueue, noticeAttempts) }

func (Notice) tenant() string { return "" }

func noticeWorker(n *notify.Notifications) river.Worker[Notice] {
	return river.WorkFunc(func(ctx context.Context, job *river.Job[Notice]) error {
		switch j := job.Args; j.About {
		case MemberAdded:
			return n.MemberAdded(ctx, j.EventID, j.TenantID, j.UserID)
		case RoleChanged:
			return n.RoleChanged(ctx, j.EventID, j.TenantID, j.UserID)
		case InvitationAccepted:
			return n.InvitationAccepted(ctx, j.EventID, j.TenantID, j.UserID)
		case PlatformInvitationAccepted:
			return n.PlatformInvitationAccepted(ctx, j.EventID, j.InvitationID)
		case PaymentFailed:
			return n.PaymentFailed(ctx, j.EventID, j.TenantID)
		default:
			return river.JobCancel(fmt.Errorf("there is no notice of %q: the job is of another version", j.About))
		}
	})
}
