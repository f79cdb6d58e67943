package usage

import (
	"context"
	"fmt"
)

// deletedAtOnce is how many rows one statement deletes: a tenant has more of them than may be deleted within the time
// of a statement.
const deletedAtOnce = 20_000

// deleteRows deletes the rows of a table that a condition on its arguments names until there are none, many statements
// long where they are many. What it deletes stays deleted where it fails.
func (m *Meter) deleteRows(ctx context.Context, table, condition string, arguments ...any) error {
	statement := fmt.Sprintf(`with gone as (
			delete from keep.%[1]s where ctid = any(array(select ctid from keep.%[1]s where %[2]s
				limit %[3]d for update skip locked)) returning 1
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
		if _, err := m.db.Exec(
			ctx,
			fmt.Sprintf(`select from keep.%s where %s limit 1 for update`, table, condition),
			arguments...); err != nil {
			return err
		}
	}
}
