package migrations_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/migrations"
	"flagledger/migrations/pgtest"
)

// Existing facts get the latest time so far in the log as their recorded time, but none after now.
func TestStandingFactsGetARecordedTime(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	// The schema before the migration, as far as it needs it.
	exec(`alter table events.event drop recorded; alter table events.head drop recorded; drop function events.append;
		create function events.append() returns int language sql as 'select 1';
		delete from flagledger_migrations where version_id = 31;
		insert into events.event (position, stream, revision, id, name, version, data, metadata)
		select position, 'project-' || position, 1, gen_random_uuid(), 'project.deleted', 1, '{}', metadata::json
		from unnest(array['{}', '{"time":"2026-01-02T03:04:05.006Z"}', '{"time":"2026-01-02T03:04:04Z"}', '{"time":"2026-01-02T03:04:06Z"}', '{"time":"9999-01-01T00:00:00Z"}'])
			with ordinality as m (metadata, position);
		update events.head set position = 5`)
	before := time.Now().Add(-time.Hour)
	if err := migrations.Apply(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), `select recorded from events.event order by position`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		t.Fatal(err)
	}
	at := func(s int, ms int) time.Time { return time.Date(2026, 1, 2, 3, 4, s, ms*1e6, time.UTC) }
	want := []time.Time{time.Unix(0, 0), at(5, 6), at(5, 6), at(6, 0)}
	if len(got) != 5 || !slices.EqualFunc(got[:4], want, time.Time.Equal) || got[4].Before(before) ||
		got[4].After(time.Now().Add(time.Hour)) {
		t.Errorf("recorded times are %v, want %v and that of the migration", got, want)
	}
	var head time.Time
	if err := conn.QueryRow(t.Context(), `select recorded from events.head`).
		Scan(&head); err != nil ||
		!head.Equal(got[4]) {
		t.Errorf("the head has %v, want that of the last event, %v: %v", head, got[4], err)
	}
	if _, err := conn.Exec(t.Context(), `update events.event set name = 'x'`); err == nil {
		t.Error("facts can be changed after the migration")
	}
}
