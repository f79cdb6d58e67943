package queries

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// FlagKeys lists the keys of all flags of a tenant.
func (q *Queries) FlagKeys(ctx context.Context, tenantID string) ([]string, error) {
	return q.names(ctx, `select key from read.flags where tenant_id = $1`, tenantID)
}

// ProjectIDs lists the ids of all projects of a tenant.
func (q *Queries) ProjectIDs(ctx context.Context, tenantID string) ([]string, error) {
	return q.names(ctx, `select id from read.projects where tenant_id = $1`, tenantID)
}

func (q *Queries) names(ctx context.Context, query, tenantID string) ([]string, error) {
	rows, err := q.db.Query(ctx, query, tenantID)
	if err != nil {
		return nil, classify(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, classify(err)
}
