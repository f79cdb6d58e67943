package events

import "time"

// KeepsSandbox reports whether a subscription, or a plan other than that of sandboxes, is in force: a sandbox does not end then.
func (s Subscription) KeepsSandbox(now time.Time) bool {
	return (s.Status != NoSubscription || s.Plan != SandboxPlan) && s.inForce(now)
}

// SandboxEnd is when a sandbox stops taking changes, zero if it does not end now: while a subscription or another plan is in force. Otherwise it is recorded,
// or the end of the last billed period if that is later. recorded is the end that it was created with, zero for those from before ends were recorded.
func (s Subscription) SandboxEnd(recorded, now time.Time) time.Time {
	switch {
	case recorded.IsZero() || s.KeepsSandbox(now):
		return time.Time{}
	case s.PeriodEnd.After(recorded):
		return s.PeriodEnd
	default:
		return recorded
	}
}
