package queries

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// FlagProjects tells of each flag of a tenant, by key, the id of its project, empty for none.
func (q *Queries) FlagProjects(ctx context.Context, tenantID string) (map[string]string, error) {
	rows, err := q.db.Query(ctx, `select key, coalesce(project_id, '') from read.flags where tenant_id = $1`, tenantID)
	if err != nil {
		return nil, classify(err)
	}
	projects := map[string]string{}
	var key, project string
	_, err = pgx.ForEachRow(rows, []any{&key, &project}, func() error {
		projects[key] = project
		return nil
	})
	return projects, classify(err)
}

// ProjectIDs lists the ids of all projects of a tenant.
func (q *Queries) ProjectIDs(ctx context.Context, tenantID string) ([]string, error) {
	rows, err := q.db.Query(ctx, `select id from read.projects where tenant_id = $1`, tenantID)
	if err != nil {
		return nil, classify(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, classify(err)
}
