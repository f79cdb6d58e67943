package commands

import "time"

// SandboxGuard returns the Guard of a Writer that refuses changes of an ended sandbox. end returns a tenant's end,
// zero for none.
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

// An ended sandbox can still be deleted, joined, left and paid for, and its flags can leave deleted projects.

func (DeleteTenant) bypassesGuard()       {}
func (LeaveTenant) bypassesGuard()        {}
func (DeclineInvitation) bypassesGuard()  {}
func (DeleteEndedSandbox) bypassesGuard() {}
func (LeaveProject) bypassesGuard()       {}
func (JoinTenant) bypassesGuard()         {} // otherwise each sign-in would try the invitation
func (SetSubscription) bypassesGuard()    {}
func (SetPlan) bypassesGuard()            {}
func (NoteCustomer) bypassesGuard()       {}
