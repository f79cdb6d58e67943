package queries

import (
	"context"
	"time"
)

// Project is a project with the number of its flags.
type Project struct {
	ID          string
	Name        string
	Description string
	Color       string
	FlagCount   int
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

const projectColumns = `p.id, p.name, p.description, p.color,
	(select count(*) from read.flags f where f.tenant_id = p.tenant_id and f.project_id = p.id) as flag_count, p.created_at, p.updated_at`

// Projects lists a tenant's projects in the order of their creation.
func (q *Queries) Projects(ctx context.Context, tenantID string, page Page) (*List[Project], error) {
	return list[Project](ctx, q.db, projectColumns, `from read.projects p where p.tenant_id = $1`, `p.created_at, p.id`, page, tenantID)
}

// Project reads one project. It returns ErrNotFound where the tenant has none of that id.
func (q *Queries) Project(ctx context.Context, tenantID, id string) (Project, error) {
	return one[Project](ctx, q.db, `select `+projectColumns+` from read.projects p where p.tenant_id = $1 and p.id = $2`, tenantID, id)
}
