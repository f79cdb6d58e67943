package queries

import (
	"context"
	"time"
)

// PlatformUser is a person as platform operators see them.
type PlatformUser struct {
	UserID         string
	Email          string
	DisplayName    string
	Known          bool   // false for an erased person
	Role           string // on the platform; may be empty
	Active         bool
	CreatedAt      time.Time
	LastAccessedAt *time.Time
	Tenants        []Membership
}

// Membership is a person's role in a tenant.
type Membership struct {
	TenantID   string
	TenantName string
	Role       string
}

const (
	platformUserColumns = `u.id as user_id, coalesce(p.email, '') as email, coalesce(p.display_name, '') as display_name,
		p.user_id is not null as known,
		u.platform_role as role, u.active, u.created_at, (select max(at) from keep.tenant_use t
			where t.user_id = u.id) as last_accessed_at,
		coalesce((select json_agg(json_build_object('TenantID', t.id, 'TenantName', t.name, 'Role', m.role)
			order by m.created_at, t.id)
			from read.members m join read.tenants t on t.id = m.tenant_id where m.user_id = u.id), '[]') as tenants`
	platformUserFrom = `from read.users u left join keep.people p on p.user_id = u.id`
)

// PlatformUsers lists the people whose address or name contains a text, or whose id equals it, in the order in which
// they joined. An empty text matches everyone.
func (q *Queries) PlatformUsers(ctx context.Context, search string, page Page) (*List[PlatformUser], error) {
	return list[PlatformUser](ctx, q.db, platformUserColumns, platformUserFrom+`
		where (strpos(lower(concat_ws(E'\n', p.email, p.display_name)), lower($1)) > 0 or u.id = $1)`, `u.created_at, u.id`, page, search)
}

// PlatformUser reads one person, or returns ErrNotFound.
func (q *Queries) PlatformUser(ctx context.Context, id string) (PlatformUser, error) {
	return one[PlatformUser](ctx, q.db, `select `+platformUserColumns+` `+platformUserFrom+` where u.id = $1`, id)
}

// GivenPlatformRoles counts the people with a granted platform role, and the pending invitations to one. Super users
// are excluded: their addresses come from the settings.
func (q *Queries) GivenPlatformRoles(ctx context.Context) (people, invitations int, err error) {
	err = q.db.QueryRow(ctx, `select (select count(*) from read.users where platform_role not in ('', 'super_user')),
		(select count(*) from read.invitations i where `+invitationStatus+` = 'pending')`).Scan(&people, &invitations)
	return people, invitations, classify(err)
}

// PlatformTenant is a tenant as platform operators see it.
type PlatformTenant struct {
	Tenant
	Active bool // false for a deleted tenant
	Flags  int
	Users  int
	// Evaluations counts the current calendar month in UTC, as far as it is stored.
	Evaluations int64
}

// PlatformTenants lists the tenants, also deleted ones, whose name or address contains a text, or whose id equals it,
// oldest first. An empty text matches all.
func (q *Queries) PlatformTenants(ctx context.Context, search string, page Page) (*List[PlatformTenant], error) {
	return list[PlatformTenant](
		ctx,
		q.db,
		tenantColumns+`, t.deleted_at is null as active,
		case when t.deleted_at is null then (select count(*) from read.flags f where f.tenant_id = t.id) else 0 end as flags,
		(select count(*) from read.members m where m.tenant_id = t.id and not m.pending) as users,
		(select coalesce(sum(e.count), 0)::bigint from keep.evaluations e where e.tenant_id = t.id
			and e.month = date_trunc('month', now() at time zone 'utc')::date) as evaluations`,
		tenantFrom+`where (strpos(lower(concat_ws(E'\n', t.name, coalesce(c.primary_email, creator.email))), lower($1)) > 0
			or t.id = $1)`,
		`t.created_at, t.id`,
		page,
		search,
	)
}
