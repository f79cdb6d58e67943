package rest

import (
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage"
)

// Counter counts evaluations. The meter of usage implements it.
type Counter interface {
	// Count counts the evaluation of a single requested flag. clientID is empty for people.
	Count(tenantID string, f *usage.Flag, environmentID string, r *evaluation.Result, clientID string)
	// CountCall counts the flags of a call that were added since it was last counted.
	CountCall(c *usage.Call, tenantID, environmentID, clientID string)
	// CountRequired counts the evaluation of a flag on behalf of another one that requires it.
	CountRequired(tenantID string, f *usage.Flag, environmentID string, r *evaluation.Result)
}
