package commands

import "time"

// EndedSandbox returns why a sandbox with an end takes no changes, or nil. A zero end is that of no sandbox.
func EndedSandbox(end, now time.Time) error {
	if end.IsZero() || now.Before(end) {
		return nil
	}
	return refuse(
		Forbidden,
		"the sandbox ended at %s and takes no more changes: its flags are still read and evaluated, and it is deleted %d "+
			"days after its end",
		end.UTC().Format(time.RFC3339),
		SandboxKeptAfterEnd/(24*time.Hour),
	)
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
