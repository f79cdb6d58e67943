package commands

import (
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// SandboxKeptAfterEnd is the time between a sandbox's end and its deletion.
const SandboxKeptAfterEnd = 30 * 24 * time.Hour

// EndedSandbox returns why a sandbox with an end takes no changes, or nil. A zero end is that of no sandbox.
func EndedSandbox(end, now time.Time) error {
	if end.IsZero() || now.Before(end) {
		return nil
	}
	return Refuse(
		Forbidden,
		"the sandbox ended at %s and takes no more changes: its flags are still read and evaluated, and it is deleted %d "+
			"days after its end",
		end.UTC().Format(time.RFC3339),
		SandboxKeptAfterEnd/(24*time.Hour),
	)
}

// An ended sandbox can still be deleted, joined, left and paid for, and its flags can leave deleted projects.

func (DeleteTenant) BypassesGuard() {}

func (LeaveTenant) BypassesGuard() {}

func (DeclineInvitation) BypassesGuard() {}

func (DeleteEndedSandbox) BypassesGuard() {}

func (LeaveProject) BypassesGuard() {}

func (JoinTenant) BypassesGuard() {} // otherwise each sign-in would try the invitation

func (SetSubscription) BypassesGuard() {}

func (SetPlan) BypassesGuard() {}

func (NoteCustomer) BypassesGuard() {}

// DeleteEndedSandbox deletes a sandbox that ended at least SandboxKeptAfterEnd ago. It leaves other tenants alone.
type DeleteEndedSandbox struct {
	TenantRef
	EndsAt time.Time
	Now    time.Time
}

func (c DeleteEndedSandbox) Decide(t state.Tenant) ([]events.Fact, error) {
	end := t.Subscription.SandboxEnd(t.SandboxEndsAt)
	if !t.Exists || end.IsZero() || !end.Equal(c.EndsAt) || c.Now.Before(end.Add(SandboxKeptAfterEnd)) {
		return nil, nil
	}
	return []events.Fact{events.TenantDeleted{}}, nil
}
