package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// WaitUntilCurrent waits until the read models of facts of the given names hold all that has been recorded. It returns ErrUnavailable where that takes too long.
func (q *Queries) WaitUntilCurrent(ctx context.Context, names ...string) error {
	head, err := q.store.Head(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if !q.wait(ctx, head, names) {
		return fmt.Errorf("%w: they have not come to position %s yet", ErrUnavailable, head)
	}
	return nil
}

// holds reports whether the read models of flags hold a position by now.
func (q *Queries) holds(ctx context.Context, position events.Position) bool {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return q.wait != nil && q.wait(ctx, position, []string{"flag."})
}

// EnvironmentAt finds the environment that bore a name at a time, once WaitUntilCurrent has waited for "tenant.". It returns ErrNotFound where none did.
func (q *Queries) EnvironmentAt(ctx context.Context, tenantID, name string, at time.Time) (events.EnvironmentRef, error) {
	return one[events.EnvironmentRef](ctx, q.db, `select id, name from read.environment_spans where tenant_id = $1 and name = $2 and since <= $3 and until > $3`,
		tenantID, name, at)
}

// EnvironmentsAt lists the environments that a tenant had at a time, in the order of their creation, once WaitUntilCurrent has waited for "tenant.".
func (q *Queries) EnvironmentsAt(ctx context.Context, tenantID string, at time.Time) ([]events.EnvironmentRef, error) {
	rows, err := q.db.Query(ctx, `select id, name from read.environment_spans where tenant_id = $1 and since <= $2 and until > $2 order by position`, tenantID, at)
	if err != nil {
		return nil, classify(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[events.EnvironmentRef])
	return list, classify(err)
}
