package queries

import (
	"context"

	"flagledger/events"
)

// Rules holds the rules of a flag in one environment, in order, and its fallthrough.
type Rules struct {
	Version     int64 // of the flag
	Rules       []events.Rule
	Fallthrough *events.Serve // nil if not set
}

// Rules reads the rules of a flag in an environment at one version. It returns ErrNotFound if the tenant has no flag
// with that key.
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
