package commands

import (
	"time"

	"flagledger/events"
)

const (
	// SandboxTTL is how long a sandbox that has ended is kept before it is deleted.
	SandboxTTL = 30 * 24 * time.Hour
	// sandboxWarningPeriod is how long before they happen its admins are told of both.
	sandboxWarningPeriod = 3 * 24 * time.Hour
)

// SandboxEnds tells when sandboxes end. The snapshot implements it.
type SandboxEnds interface {
	// SandboxEnd is when a tenant takes no more changes; the zero time for one that does not end.
	SandboxEnd(tenantID string) time.Time
}

// SandboxGuard is the Guard of a Writer: it refuses changes of a sandbox that has ended.
func SandboxGuard(ends SandboxEnds, now func() time.Time) func(tenantID string) error {
	return func(tenantID string) error {
		end := ends.SandboxEnd(tenantID)
		if end.IsZero() || now().Before(end) {
			return nil
		}
		return refuse(Forbidden, "the sandbox ended at %s and takes no more changes: its flags are still read and evaluated, and it is deleted %d days after its end",
			end.UTC().Format(time.RFC3339), SandboxTTL/(24*time.Hour))
	}
}

// A sandbox that has ended can still be deleted and paid for.

func (DeleteTenant) exempt()       {}
func (DeleteEndedSandbox) exempt() {}
func (SetSubscription) exempt()    {}
func (SetPlan) exempt()            {}
func (NoteCustomer) exempt()       {}

// DeleteEndedSandbox deletes a sandbox that ended at a time SandboxTTL ago or earlier. Any other tenant stays as it is.
type DeleteEndedSandbox struct {
	TenantRef
	EndsAt time.Time
	Now    time.Time
}

func (c DeleteEndedSandbox) decide(t Tenant) ([]events.Fact, error) {
	end := t.Subscription.SandboxEnd(t.SandboxEndsAt)
	if !t.Exists || end.IsZero() || !end.Equal(c.EndsAt) || c.Now.Before(end.Add(SandboxTTL)) {
		return nil, nil
	}
	return []events.Fact{events.TenantDeleted{}}, nil
}

// SandboxNotice is what the admins of a sandbox are told of beforehand. It is stored, and stays as it is.
type SandboxNotice string

// The notices.
const (
	SandboxEnding   SandboxNotice = "ending"
	SandboxDeletion SandboxNotice = "deletion"
)

// SandboxNoticeGiven is a notice that was given.
type SandboxNoticeGiven struct {
	TenantID string
	Notice   SandboxNotice
	EndsAt   time.Time // the end of the sandbox that it was about
	GivenAt  time.Time
}
