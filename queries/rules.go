package queries

import (
	"context"

	"flagledger/events"
)

// Rules are the rules of a flag in one environment, in their order, and its fallthrough there.
type Rules struct {
	Version     int64 // of the flag
	Rules       []events.Rule
	Fallthrough *events.Serve // nil where it is not set
}

// Rules reads the rules of a flag in an environment, all at the same version. It returns ErrNotFound where the tenant
// has no flag of that key.
func (q *Queries) Rules(ctx context.Context, tenantID, environmentID, key string) (Rules, error) {
	return one[Rules](
		ctx,
		q.db,
		`select f.version, coalesce((select json_agg(r.rule order by r.position) from read.flag_rules r
			where r.tenant_id = f.tenant_id and r.key = f.key and r.environment_id = $2), '[]') as rules, s.serve as fallthrough
				from read.flags f
		left join read.flag_fallthroughs s on s.tenant_id = f.tenant_id and s.key = f.key and s.environment_id = $2
		where f.tenant_id = $1 and f.key = $3`,
		tenantID,
		environmentID,
		key,
	)
}
