package notify

import (
	"context"
	"strings"
	"time"

	"flagledger/commands"
	"flagledger/events/state"
)

// SandboxNotice is an advance notice to the admins of a sandbox. It is stored, so it never changes.
type SandboxNotice string

// The notices.
const (
	WarnOfEnd      SandboxNotice = "ending"
	WarnOfDeletion SandboxNotice = "deletion"
)

// sandboxWarningPeriod is how long before a sandbox's end and its deletion the admins are notified.
const sandboxWarningPeriod = 3 * 24 * time.Hour

// SandboxNoticeGiven is a notice that was sent.
type SandboxNoticeGiven struct {
	TenantID string
	Notice   SandboxNotice
	EndsAt   time.Time // the sandbox's end at that time
	GivenAt  time.Time
}

// SandboxNotices records notices and mails them. Package jobs implements it.
type SandboxNotices interface {
	Given(ctx context.Context) ([]SandboxNoticeGiven, error)
	// Give records a notice, and mails it to some people. It ignores a notice that was recorded before.
	Give(ctx context.Context, n SandboxNoticeGiven, userIDs []string) error
	// Drop deletes a notice of an outdated end.
	Drop(ctx context.Context, n SandboxNoticeGiven) error
	// Forget deletes all notices of a deleted tenant.
	Forget(ctx context.Context, tenantID string) error
}

// NoticeDue returns the notice that is due for a sandbox, or "".
func NoticeDue(end, now time.Time) SandboxNotice {
	switch {
	case !now.Before(end.Add(commands.SandboxKeptAfterEnd - sandboxWarningPeriod)):
		return WarnOfDeletion
	case !now.Before(end.Add(-sandboxWarningPeriod)) && now.Before(end):
		return WarnOfEnd
	default:
		return ""
	}
}

// DeletionDue reports whether the admins were notified long enough before the deletion.
func (n SandboxNoticeGiven) DeletionDue(now time.Time) bool {
	return n.Notice == WarnOfDeletion && !now.Before(n.GivenAt.Add(sandboxWarningPeriod))
}

// GiveSandboxNotice notifies the admins of a sandbox that it ends soon, or will be deleted.
func (s *Notifications) GiveSandboxNotice(ctx context.Context, tenant state.Tenant, n SandboxNoticeGiven) error {
	cause := strings.Join([]string{"sandbox", string(n.Notice), n.TenantID, n.EndsAt.UTC().Format(time.RFC3339Nano)},
		"\x00")
	message := Notification{
		Type: SandboxEndingNotice, Title: "Your sandbox " + tenant.Name + " ends soon",
		Body: "From " + n.EndsAt.UTC().Format(time.RFC3339) + " on it takes no more changes. To keep it, choose a plan.",
	}
	if n.Notice == WarnOfDeletion {
		message.Type, message.Title = SandboxDeletionNotice, "Your sandbox "+tenant.Name+" will be deleted"
		message.Body = "It ended at " + n.EndsAt.UTC().
			Format(time.RFC3339) +
			", and is deleted with all that is in it in three days at the earliest. To keep it, choose a plan."
	}
	return s.NotifyAdmins(ctx, cause, ofTenant(tenant, message))
}
