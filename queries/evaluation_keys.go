package queries

import (
	"context"
	"time"

	"flagledger/events"
)

// EvaluationKey is an evaluation key of a tenant.
type EvaluationKey struct {
	ID         string
	Key        events.EvaluationKeyAdded // as it is now
	CreatedAt  time.Time
	CreatedBy  string
	LastUsedAt *time.Time // nil if never, or if the usage is no longer stored
}

const (
	evaluationKeyColumns = `k.id, k.key, k.created_at, k.created_by, to_timestamp(used.seen) as last_used_at`
	evaluationKeyFrom    = `from read.evaluation_keys k left join (
			select id, max((clients -> id ->> 1)::bigint) as seen from (
				select clients::jsonb as clients from keep.tenant_days where tenant_id = $1
				union all select clients::jsonb from keep.tenant_hours where tenant_id = $1) u, jsonb_object_keys(clients) id
			group by id) used on used.id = k.id
		where k.tenant_id = $1 and not k.deleted`
)

// EvaluationKeys lists a tenant's evaluation keys, oldest first.
func (q *Queries) EvaluationKeys(ctx context.Context, tenantID string, page Page) (*List[EvaluationKey], error) {
	return list[EvaluationKey](ctx, q.db, evaluationKeyColumns, evaluationKeyFrom, `k.created_at, k.id`, page, tenantID)
}

// EvaluationKey reads one evaluation key of a tenant, or returns ErrNotFound.
func (q *Queries) EvaluationKey(ctx context.Context, tenantID, id string) (EvaluationKey, error) {
	return one[EvaluationKey](ctx, q.db, `select `+evaluationKeyColumns+` `+evaluationKeyFrom+` and k.id = $2`,
		tenantID, id)
}

// callerNames is a query of the names of machines that evaluate flags: OAuth clients and evaluation keys, also deleted
// ones.
const callerNames = `(select id, tenant_id, name from read.oauth_clients
	union all select id, tenant_id, key ->> 'name' from read.evaluation_keys)`
