package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// distinctTenants lists the tenants that have rows in a table, each of which its index finds at once.
func distinctTenants(ctx context.Context, db querier, table string) ([]string, error) {
	rows, err := db.Query(ctx, `with recursive t as (
			(select tenant_id from keep.`+table+` order by tenant_id limit 1)
			union all
			select (select n.tenant_id from keep.`+table+` n where n.tenant_id > t.tenant_id order by n.tenant_id limit 1)
				from t where t.tenant_id is not null
		) select tenant_id from t where tenant_id is not null`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// distinctTimes lists the hours or days of a tenant's rows, each of which the index finds at once.
func (m *Meter) distinctTimes(ctx context.Context, table, column, tenantID string) ([]time.Time, error) {
	rows, err := m.db.Query(ctx, fmt.Sprintf(`with recursive t as (
			(select %[2]s as at from keep.%[1]s where tenant_id = $1 order by %[2]s limit 1)
			union all
			select (select n.%[2]s from keep.%[1]s n where n.tenant_id = $1 and n.%[2]s > t.at order by n.%[2]s limit 1) from t
				where t.at is not null
		) select at from t where at is not null`, table, column), tenantID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}
