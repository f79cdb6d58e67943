package commands

import "time"

// SandboxGuard is the Guard of a Writer: it refuses changes of a sandbox that has ended. end tells when a tenant does,
// the zero time for one that does not.
func SandboxGuard(end func(tenantID string) time.Time, now func() time.Time) func(tenantID string) error {
	return func(tenantID string) error {
		at := end(tenantID)
		if at.IsZero() || now().Before(at) {
			return nil
		}
		return refuse(
			Forbidden,
			"the sandbox ended at %s and takes no more changes: its flags are still read and evaluated, and it is deleted %d "+
				"days after its end",
			at.UTC().Format(time.RFC3339),
			SandboxKeptAfterEnd/(24*time.Hour),
		)
	}
}

// A sandbox that has ended can still be deleted, joined, left and paid for, and its flags leave projects that were
// deleted.

func (DeleteTenant) bypassesGuard()       {}
func (LeaveTenant) bypassesGuard()        {}
func (DeclineInvitation) bypassesGuard()  {}
func (DeleteEndedSandbox) bypassesGuard() {}
func (LeaveProject) bypassesGuard()       {}
func (JoinTenant) bypassesGuard()         {} // or the invitation would be tried at each sign-in
func (SetSubscription) bypassesGuard()    {}
func (SetPlan) bypassesGuard()            {}
func (NoteCustomer) bypassesGuard()       {}
