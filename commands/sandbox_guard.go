package commands

import "time"

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
			end.UTC().Format(time.RFC3339), SandboxKeptAfterEnd/(24*time.Hour))
	}
}

// A sandbox that has ended can still be deleted, joined, left and paid for.

func (DeleteTenant) exempt()       {}
func (LeaveTenant) exempt()        {}
func (DeleteEndedSandbox) exempt() {}
func (LeaveProject) exempt()       {}
func (JoinTenant) exempt()         {} // or the invitation would be tried at each sign-in
func (SetSubscription) exempt()    {}
func (SetPlan) exempt()            {}
func (NoteCustomer) exempt()       {}
