package queries

import (
	"context"
	"time"
)

// Member is a member of a tenant with what the directory knows of them.
type Member struct {
	UserID         string
	Email          string
	DisplayName    string
	Known          bool // false for someone since erased
	Role           string
	Pending        bool
	LastAccessedAt *time.Time
	CreatedAt      time.Time
}

// Members lists the members of a tenant, pending ones among them, in the order in which they joined.
func (q *Queries) Members(ctx context.Context, tenantID string, page Page) (*List[Member], error) {
	return list[Member](ctx, q.db,
		`m.user_id, coalesce(p.email, i.email, '') as email, coalesce(p.display_name, '') as display_name, coalesce(p.user_id, i.id) is not null as known,
			m.role, m.pending, u.at as last_accessed_at, m.created_at`,
		`from read.members m left join keep.people p on p.user_id = m.user_id left join keep.pending_members i on i.id = m.user_id
		left join keep.tenant_use u on u.user_id = m.user_id and u.tenant_id = m.tenant_id where m.tenant_id = $1`,
		`m.position, m.user_id`, page, tenantID)
}
