package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/events/state"
)

// Project is a project with the number of its flags.
type Project struct {
	Fields    events.ProjectCreated `db:"project"`
	FlagCount int
	CreatedAt time.Time
	UpdatedAt time.Time
}

// State returns the project as its facts add up.
func (p Project) State() state.Project {
	return state.Project{ProjectCreated: p.Fields, Exists: true, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt}
}

// projectColumns selects from rows p, and counts flags in rows f.
const projectColumns = `p.project, (select count(*) from %s and f.tenant_id = p.tenant_id
	and f.project_id = p.id) as flag_count, p.created_at, p.updated_at`

// projectRows returns the columns of projects and the tail of the query for a tenant's projects at a time.
func (q *Queries) projectRows(
	ctx context.Context, tenantID string, at time.Time,
) (columns, from string, args []any, err error) {
	if at.IsZero() {
		return fmt.Sprintf(projectColumns, `read.flags f where true`), `from read.projects p where p.tenant_id = $1`, []any{
			tenantID,
		}, nil
	}
	return fmt.Sprintf(projectColumns, `read.flag_spans f where f.since <= $2 and f.until > $2`),
		`from read.project_spans p where p.tenant_id = $1 and p.since <= $2 and p.until > $2`, []any{tenantID, at}, q.WaitUntilCurrent(ctx, at, "project.", "flag.")
}

// Projects lists a tenant's projects at a time, oldest first.
func (q *Queries) Projects(ctx context.Context, tenantID string, at time.Time, page Page) (*List[Project], error) {
	columns, from, args, err := q.projectRows(ctx, tenantID, at)
	if err != nil {
		return nil, err
	}
	return list[Project](ctx, q.db, columns, from, `p.created_at, p.id`, page, args...)
}

// Project reads one project at a time, or returns ErrNotFound.
func (q *Queries) Project(ctx context.Context, tenantID, id string, at time.Time) (Project, error) {
	columns, from, args, err := q.projectRows(ctx, tenantID, at)
	if err != nil {
		return Project{}, err
	}
	return one[Project](
		ctx,
		q.db,
		fmt.Sprintf(`select %s %s and p.id = $%d`, columns, from, len(args)+1),
		append(args, id)...)
}

// FlagProjects returns the project id of each flag key of a tenant, empty for none.
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
