// Package tenants serves tenants with their environments, members, invitations and sandboxes.
package tenants

import (
	"flagledger/commands/jobs"
	"flagledger/commands/people"
	"flagledger/commands/sandbox"
	"flagledger/commands/tenants"
	"flagledger/http/rest"
)

// Options holds what tenants need.
type Options struct {
	Tenancies *tenants.Tenancies
	Sandboxes *sandbox.Sandboxes
	Inviter   *people.Inviter
	Windows   *jobs.Windows
	// InvitationsPerDay replaces the plans' daily quota of invitations, unless it is 0.
	InvitationsPerDay int
}

// API serves tenants.
type API struct {
	*rest.Core
	Options
}

// New returns the operations of a core.
func New(core *rest.Core, o Options) *API { return &API{Core: core, Options: o} }

// AddOperations adds the operations to the OpenAPI document and its router.
func (a *API) AddOperations() {
	a.addTenants()
	a.addEnvironments()
	a.addFlagRules()
	a.addMembers()
	a.addInvitations()
	a.addSandbox()
}
