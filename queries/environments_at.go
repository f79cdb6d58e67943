package queries

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// EnvironmentAt finds the environment that bore a name at a time, once WaitUntilCurrent has waited for "tenant.". It
// returns ErrNotFound where none did.
func (q *Queries) EnvironmentAt(
	ctx context.Context, tenantID, name string, at time.Time,
) (events.EnvironmentRef, error) {
	return one[events.EnvironmentRef](ctx, q.db,
		`select id, name from read.environment_spans where tenant_id = $1 and name = $2 and since <= $3 and until > $3`,
		tenantID, name, at)
}

// EnvironmentsAt lists the environments that a tenant had at a time, in the order of their creation, once
// WaitUntilCurrent has waited for "tenant.".
func (q *Queries) EnvironmentsAt(ctx context.Context, tenantID string, at time.Time) ([]events.EnvironmentRef, error) {
	rows, err := q.db.Query(ctx,
		`select id, name from read.environment_spans where tenant_id = $1 and since <= $2 and until > $2 order by position`,
		tenantID, at)
	if err != nil {
		return nil, classify(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[events.EnvironmentRef])
	return list, classify(err)
}
