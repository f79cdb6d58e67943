package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TablesWith lists the tables of a schema with one of some texts in any column, ignoring case. It finds them through
// the catalog, so it includes new tables.
func TablesWith(t testing.TB, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, schema string, texts ...string,
) (found []string) {
	t.Helper()
	rows, err := db.Query(t.Context(),
		`select table_name from information_schema.tables where table_schema = $1 order by table_name`, schema)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 8 {
		t.Fatalf("found the tables %v: %v", tables, err)
	}
	for _, table := range tables {
		var there bool
		err := db.QueryRow(t.Context(), `select exists (select from `+pgx.Identifier{schema, table}.Sanitize()+` r,
			unnest($1::text[]) part
			where strpos(lower(r::text), lower(part)) > 0)`, texts).
			Scan(&there)
		if err != nil {
			t.Fatal(err)
		}
		if there {
			found = append(found, table)
		}
	}
	return found
}
