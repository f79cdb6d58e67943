package queries

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// EnvironmentAt finds the environment with this name at a time. Call WaitUntilCurrent for "tenant." first. It returns
// ErrNotFound if there was none.
func (q *Queries) EnvironmentAt(
	ctx context.Context, tenantID, name string, at time.Time,
) (events.EnvironmentRef, error) {
	return one[events.EnvironmentRef](ctx, q.db,
		`select id, name from read.environment_spans where tenant_id = $1 and name = $2 and since <= $3 and until > $3`,
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
