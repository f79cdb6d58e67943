package events

import "time"

// SandboxEnd is when a sandbox takes no more changes; the zero time where it does not end. recorded is the end that it was created with, zero for those from
// before ends were recorded. A sandbox does not end while it has a subscription or another plan, and not before the period that was paid for.
func (s Subscription) SandboxEnd(recorded, now time.Time) time.Time {
	kept := s.Status != NoSubscription || s.Plan != SandboxPlan
	switch {
	case recorded.IsZero() || kept && s.inForce(now):
		return time.Time{}
	case s.PeriodEnd.After(recorded):
		return s.PeriodEnd
	default:
		return recorded
	}
}
