package queries

import (
	"flagledger/events"
	"flagledger/projections/snapshot"
)

// Live answers what every request asks, from memory alone.
func (q *Queries) Live() *snapshot.Snapshot { return q.snapshot }

// Evaluate says what a flag serves. The error is ErrNotFound for a flag that does not exist, *snapshot.NoUnitError where a split has nothing to
// bucket by.
func Evaluate(tenant *snapshot.Tenant, environment events.EnvironmentRef, key string, c *snapshot.Context) (snapshot.Result, error) {
	flag, ok := tenant.Flag(key)
	if !ok {
		return snapshot.Result{}, ErrNotFound
	}
	return flag.Evaluate(environment.ID, c)
}
