package systemtest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/projections"
	"flagledger/projections/models"
)

// connect opens a connection that is closed after the test.
func connect(t testing.TB, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// column returns the values of a query with one column.
func column[T any](t testing.TB, conn *pgx.Conn, sql string) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// readModels returns all rows of all read models, by table.
func readModels(t testing.TB, databaseURL string) map[string][]string {
	t.Helper()
	conn := connect(t, databaseURL)
	tables := map[string][]string{}
	for _, table := range column[string](t, conn, `select tablename from pg_tables where schemaname = 'read' and tablename <> 'checkpoints'`) {
		tables[table] = column[string](t, conn, `select t::text from read.`+table+` t order by t::text collate "C"`)
	}
	return tables
}

// sameReadModels compares read models by table, and reports the first rows that differ.
func sameReadModels(t testing.TB, before, after map[string][]string) {
	t.Helper()
	for _, table := range slices.Sorted(maps.Keys(before)) {
		if !slices.Equal(before[table], after[table]) {
			missing := slices.DeleteFunc(slices.Clone(after[table]),
				func(row string) bool { return slices.Contains(before[table], row) })
			t.Errorf("%s had %d rows; rebuilt, it has %d, of which %d were not there before: %.500v", table, len(before[table]),
				len(after[table]), len(missing), missing)
		}
		// by the load, which creates few facts on a slow machine
		unused := []string{
			"projects",
			"project_spans",
			"flag_states",
			"audit_nodes",
			"flag_variations",
			"flag_environments",
			"flag_environment_spans",
			"invitations",
			"oauth_clients",
			"evaluation_keys",
		}
		if len(before[table]) == 0 && !slices.Contains(unused, table) {
			t.Errorf("%s has no rows", table)
		}
	}
}

// settled waits until the service is healthy and its read models are current.
func settled(s *nodetest.Service) {
	s.T.Helper()
	s.Eventually("the service is well", func() bool {
		return strings.Contains(s.Anonymous().Attempt("GET", "/health", "").Body, `"status":"ok"`)
	})
	pool, err := node.OpenPool(s.T.Context(), s.DatabaseURL)
	if err != nil {
		s.T.Fatal(err)
	}
	defer pool.Close()
	store := s.Store()
	s.Eventually("the read models hold all of the log", func() bool {
		list, err := projections.Statuses(s.T.Context(), pool, models.All(), store)
		return err == nil &&
			!slices.ContainsFunc(list, func(status projections.Status) bool { return !status.Built || status.Lag > 0 })
	})
}
