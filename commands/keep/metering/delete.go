package metering

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// deletedAtOnce is how many rows one statement deletes: a tenant has more of them than may be deleted within the time of a statement.
const deletedAtOnce = 20_000

// deleteRows deletes the rows of a table that a condition on its arguments names, many statements long where they are many. What it deletes stays deleted where it fails.
func (m *Meter) deleteRows(ctx context.Context, table, condition string, arguments ...any) error {
	statement := fmt.Sprintf(`delete from keep.%[1]s where ctid = any(array(select ctid from keep.%[1]s where %[2]s limit %[3]d))`, table, condition, deletedAtOnce)
	for {
		deleted, err := m.db.Exec(ctx, statement, arguments...)
		if err != nil || deleted.RowsAffected() < deletedAtOnce {
			return err
		}
	}
}

// timesOf lists the hours or days of a tenant's rows, each of which the index finds at once.
func (m *Meter) timesOf(ctx context.Context, table, column, tenantID string) ([]time.Time, error) {
	rows, err := m.db.Query(ctx, fmt.Sprintf(`with recursive t as (
			(select %[2]s as at from keep.%[1]s where tenant_id = $1 order by %[2]s limit 1)
			union all
			select (select n.%[2]s from keep.%[1]s n where n.tenant_id = $1 and n.%[2]s > t.at order by n.%[2]s limit 1) from t where t.at is not null
		) select at from t where at is not null`, table, column), tenantID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}
