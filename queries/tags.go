package queries

import "context"

// Tag is a tag with the number of flags that have it.
type Tag struct {
	Name      string
	FlagCount int
}

// maxTags limits the tags of a call: each piece of the list counts all tags of the tenant again.
const maxTags = 500

// Tags lists the tags of a tenant's flags, by name, and at most maxTags of them.
func (q *Queries) Tags(ctx context.Context, tenantID string, page Page) (*List[Tag], error) {
	if page.Limit == 0 || page.Limit > maxTags {
		page.Limit = maxTags
	}
	return list[Tag](ctx, q.db, `t.name, t.flag_count`, `from (select tag as name, count(*) as flag_count
		from read.flags f cross join unnest(f.tags) tag where f.tenant_id = $1 group by tag) t`, `t.name`, page, tenantID)
}
