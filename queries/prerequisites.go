package queries

import (
	"context"

	"flagledger/events/state"
)

// Prerequisites are a flag's prerequisites in one environment.
type Prerequisites struct {
	Version       int64 // of the flag
	Prerequisites []state.Prerequisite
}

// Prerequisites reads the prerequisites of a flag in an environment at one version. It returns ErrNotFound if the
// tenant has no flag with that key.
func (q *Queries) Prerequisites(ctx context.Context, tenantID, environmentID, key string) (Prerequisites, error) {
	return one[Prerequisites](ctx, q.db,
		`select version, coalesce(prerequisites->$2, '[]') as prerequisites from read.flags
			where tenant_id = $1 and key = $3`,
		tenantID, environmentID, key)
}
