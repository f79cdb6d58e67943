package queries

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Name is the current name of a person or an OAuth client.
type Name struct {
	Text string // a display name, or else an address; may be empty
	// Listed is false for a person who is not in the directory: erased, or with a withdrawn invitation.
	Listed    bool
	Erased    bool
	Withdrawn bool // a pending member whose invitation was withdrawn
}

// Names returns names by the ids of people, of a tenant's pending members and of OAuth clients, also deleted ones. A
// pending member who has joined since has the person's name. Other ids have an empty name.
func (q *Queries) Names(ctx context.Context, tenantID string, ids []string) (map[string]Name, error) {
	rows, err := q.db.Query(ctx, `
		select i.id, coalesce(c.name, nullif(p.display_name, ''), p.email, m.email, '') as text,
			coalesce(c.id, p.user_id, m.id) is not null as listed, coalesce(u.erased, false) as erased, coalesce(s.withdrawn,
				false) as withdrawn
		from unnest($1::text[]) i(id)
		left join lateral (select m.joined_as, `+withdrawn+` as withdrawn from read.member_spans m where m.tenant_id = $2
			and m.user_id = i.id and m.pending limit 1) s on true
		left join keep.people p on p.user_id = coalesce(s.joined_as, i.id)
		left join keep.pending_members m on m.id = i.id
		left join read.oauth_clients c on c.id = i.id
		left join read.users u on u.id = coalesce(s.joined_as, i.id)`, ids, tenantID)
	if err != nil {
		return nil, classify(err)
	}
	names := make(map[string]Name, len(ids))
	var id string
	var name Name
	_, err = pgx.ForEachRow(rows, []any{&id, &name.Text, &name.Listed, &name.Erased, &name.Withdrawn}, func() error {
		names[id] = name
		return nil
	})
	return names, classify(err)
}
