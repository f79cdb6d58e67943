package events

import "time"

// KeepsSandbox reports whether a sandbox neither ends nor is cleaned up or deleted: while it has a manageable
// subscription, even if news of its renewal is missing, or another plan than sandbox.
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
