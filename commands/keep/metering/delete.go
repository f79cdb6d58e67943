package metering

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// deletedAtOnce is how many rows one statement deletes: a tenant has more of them than may be deleted within the time of a statement.
const deletedAtOnce = 20_000

// deleteRows deletes the rows of a table that a condition on its arguments names until there are none, many statements long where they are many. What it deletes stays deleted where it
// fails.
func (m *Meter) deleteRows(ctx context.Context, table, condition string, arguments ...any) error {
	statement := fmt.Sprintf(`with gone as (
			delete from keep.%[1]s where ctid = any(array(select ctid from keep.%[1]s where %[2]s limit %[3]d for update skip locked)) returning 1
		) select (select count(*) from gone), exists (select from keep.%[1]s where %[2]s)`, table, condition, deletedAtOnce)
	for {
		var deleted int
		var found bool // before
		if err := m.db.QueryRow(ctx, statement, arguments...).Scan(&deleted, &found); err != nil || !found {
			return err
		}
		if deleted > 0 {
			continue
		}
		// Others hold all that are left: they may be deleting them, or about to fail.
		if _, err := m.db.Exec(ctx, fmt.Sprintf(`select from keep.%s where %s limit 1 for update`, table, condition), arguments...); err != nil {
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
