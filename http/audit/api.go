// Package audit serves the audit trail: entries, facts, proofs and exports.
package audit

import (
	"flagledger/commands/keep/checkpoints"
	"flagledger/http/rest"
)

// API serves the audit trail.
type API struct {
	*rest.Core
	Checkpoints *checkpoints.Checkpoints
}

// New returns the operations of a core.
func New(core *rest.Core, checkpoints *checkpoints.Checkpoints) *API { return &API{core, checkpoints} }

// AddOperations adds the operations to the OpenAPI document and its router.
func (a *API) AddOperations() { a.addAudit() }
