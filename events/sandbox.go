package events

import "time"

// KeepsSandbox reports whether a sandbox is kept: while it has a subscription that can be managed, also where news of
// its renewal is missing, or was given another plan than that of sandboxes. A sandbox that is kept does not end, is not
// cleaned up and not deleted.
func (s Subscription) KeepsSandbox() bool {
	return s.Status.Manageable() || s.Status == NoSubscription && s.Plan != SandboxPlan
}

// SandboxEnd is when a sandbox stops taking changes: the later one of recorded and the end of the last billed period,
// zero while it is kept. recorded is the end that it was created with, zero for those from before ends were recorded.
func (s Subscription) SandboxEnd(recorded time.Time) time.Time {
	switch {
	case recorded.IsZero() || s.KeepsSandbox():
		return time.Time{}
	case s.PeriodEnd.After(recorded):
		return s.PeriodEnd
	default:
		return recorded
	}
}
