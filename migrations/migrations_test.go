package migrations_test

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/migrations"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Several nodes that start together migrate a database to the newest schema once, and a later one finds nothing to do.
func TestSeveralNodesMigrateAtOnce(t *testing.T) {
	url := pgtest.URL(t)
	var nodes sync.WaitGroup
	for range 4 {
		nodes.Go(func() {
			if err := migrations.Apply(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
		})
	}
	nodes.Wait()
	if err := migrations.Apply(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var versions, distinct, jobs int
	if err := conn.QueryRow(t.Context(), `select count(*), count(distinct version), (select count(*) from jobs.river_job) from jobs.river_migration`).
		Scan(&versions, &distinct, &jobs); err != nil {
		t.Fatal(err)
	}
	if versions == 0 || versions != distinct || jobs != 0 {
		t.Errorf("%d versions are noted, %d of them distinct; there are %d jobs", versions, distinct, jobs)
	}
}

// A missing migration with a lower number than the newest applied one is applied too.
func TestAMissingMigrationIsMadeUpFor(t *testing.T) {
	url, log := pgtest.Migrated(t), slog.New(slog.DiscardHandler)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(
		t.Context(), `drop table keep.mailed_invitations; delete from flagledger_migrations where version_id = 12`,
	); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(t.Context(), url, log); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `select from keep.mailed_invitations`); err != nil {
		t.Error(err)
	}
	// Development versions had these two under other numbers.
	if _, err := conn.Exec(t.Context(), `delete from flagledger_migrations where version_id in (12, 13)`); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(t.Context(), url, log); err != nil {
		t.Error(err)
	}
}
