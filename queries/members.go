package queries

import (
	"context"
	"time"
)

// Member is a member of a tenant with their names from the directory.
type Member struct {
	UserID      string
	Email       string
	DisplayName string
	// Known is false for a person who was erased, and for a withdrawn invitation whose address was deleted.
	Known          bool
	Withdrawn      bool // a historical pending member whose invitation was withdrawn
	Role           string
	Pending        bool
	LastAccessedAt *time.Time
	CreatedAt      time.Time
}

// memberKeepings joins the directory's data of members. An access from before the person accepted an invitation
// belongs to an earlier membership. Other members' accesses are all shown, since a node's clock may be behind.
const memberKeepings = ` left join keep.pending_members i on i.id = m.user_id
	left join (select distinct tenant_id, joined_as from read.member_spans where joined_as is not null) joined
		on joined.tenant_id = m.tenant_id and joined.joined_as = m.user_id
	left join keep.tenant_use u on u.user_id = m.user_id and u.tenant_id = m.tenant_id
		and (u.at >= m.created_at or joined.joined_as is null)`

// withdrawn selects whether a row m of read.member_spans is a pending member whose invitation was withdrawn.
const withdrawn = `m.pending and m.joined_as is null and (select true from read.members now
	where now.user_id = m.user_id and now.tenant_id = m.tenant_id) is null`

// Members lists the members of a tenant at a time, also pending ones, in the order in which they joined. Names are
// current: a pending member who has joined since has the person's name.
func (q *Queries) Members(ctx context.Context, tenantID string, at time.Time, page Page) (*List[Member], error) {
	ended := "false"
	from, args := `from read.members m left join keep.people p on p.user_id = m.user_id`+memberKeepings+`
		where m.tenant_id = $1`, []any{
		tenantID,
	}
	if !at.IsZero() {
		if err := q.WaitUntilCurrent(ctx, at, "tenant."); err != nil {
			return nil, err
		}
		ended = withdrawn
		from, args = `from read.member_spans m left join keep.people p on p.user_id = coalesce(m.joined_as, m.user_id)`+memberKeepings+
			` where m.tenant_id = $1 and m.since <= $2 and m.until > $2`, append(args, at)
	}
	return list[Member](
		ctx,
		q.db,
		`m.user_id, coalesce(p.email, i.email, '') as email, coalesce(p.display_name, '') as display_name,
			coalesce(p.user_id, i.id) is not null as known,
			`+ended+` as withdrawn, m.role, m.pending, u.at as last_accessed_at, m.created_at`,
		from,
		`m.position, m.user_id`,
		page,
		args...)
}
