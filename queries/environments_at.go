package queries

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/events/state"
)

// EnvironmentAt finds the environment with this name at a time. Call WaitUntilCurrent for "tenant." first. It returns
// ErrNotFound if there was none.
func (q *Queries) EnvironmentAt(
	ctx context.Context, tenantID, name string, at time.Time,
) (state.Environment, error) {
	return one[state.Environment](ctx, q.db,
		`select id, name, (select min(since) from read.environment_spans where tenant_id = s.tenant_id and id = s.id) as added_at
		from read.environment_spans s where tenant_id = $1 and name = $2 and since <= $3 and until > $3`,
		tenantID, name, at)
}

// EnvironmentsAt lists a tenant's environments at a time, in its order. Call WaitUntilCurrent for "tenant." first.
func (q *Queries) EnvironmentsAt(ctx context.Context, tenantID string, at time.Time) ([]events.EnvironmentRef, error) {
	rows, err := q.db.Query(ctx,
		`select id, name from read.environment_spans where tenant_id = $1 and since <= $2 and until > $2
			order by version, place`,
		tenantID, at)
	if err != nil {
		return nil, classify(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[events.EnvironmentRef])
	return list, classify(err)
}
