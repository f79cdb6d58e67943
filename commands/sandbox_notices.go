package commands

import (
	"context"
	"strings"
	"time"
)

// SandboxNotice is what the admins of a sandbox are told of beforehand. It is stored, and stays as it is.
type SandboxNotice string

// The notices.
const (
	WarnOfEnd      SandboxNotice = "ending"
	WarnOfDeletion SandboxNotice = "deletion"
)

// sandboxWarningPeriod is how long before they happen the admins of a sandbox are told of its end and its deletion.
const sandboxWarningPeriod = 3 * 24 * time.Hour

// SandboxNoticeGiven is a notice that was given.
type SandboxNoticeGiven struct {
	TenantID string
	Notice   SandboxNotice
	EndsAt   time.Time // the end of the sandbox that it was about
	GivenAt  time.Time
}

// SandboxNotices remembers the notices that were given, and has them mailed. The jobs implement it.
type SandboxNotices interface {
	Given(ctx context.Context) ([]SandboxNoticeGiven, error)
	// Give notes a notice, and has it mailed to some people. One that was given before is left as it is.
	Give(ctx context.Context, n SandboxNoticeGiven, userIDs []string) error
	// Drop drops a notice of an end that has changed since.
	Drop(ctx context.Context, n SandboxNoticeGiven) error
	// Forget drops all notices of a tenant that has ended.
	Forget(ctx context.Context, tenantID string) error
}

// noticeDue is the notice that is to be given of a sandbox with an end, empty where none is.
func noticeDue(end, now time.Time) SandboxNotice {
	switch {
	case !now.Before(end.Add(SandboxKeptAfterEnd - sandboxWarningPeriod)):
		return WarnOfDeletion
	case !now.Before(end.Add(-sandboxWarningPeriod)) && now.Before(end):
		return WarnOfEnd
	default:
		return ""
	}
}

// deletionDue reports whether the admins of a sandbox have been told long enough that it is deleted.
func (n SandboxNoticeGiven) deletionDue(now time.Time) bool {
	return n.Notice == WarnOfDeletion && !now.Before(n.GivenAt.Add(sandboxWarningPeriod))
}

// GiveSandboxNotice tells the admins of a sandbox that it ends soon, or that it will be deleted.
func (s *Notifications) GiveSandboxNotice(ctx context.Context, tenant Tenant, n SandboxNoticeGiven) error {
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
