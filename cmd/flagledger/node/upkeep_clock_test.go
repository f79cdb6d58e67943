package node

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands/jobs"
	"flagledger/commands/tenants"
	"flagledger/migrations/pgtest"
	"flagledger/projections/usage"
)

// A node whose clock is ahead rolls up neither days nor months: others still write usage of them.
func TestAWrongClockAddsNothingUp(t *testing.T) {
	url := pgtest.Migrated(t)
	run := func(sql string) {
		t.Helper()
		pool, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run(
		`create function public.clock_timestamp() returns timestamptz language sql as $$ select pg_catalog.clock_timestamp() - interval '1 month' $$;
		insert into keep.evaluations (tenant_id, month, run, count) select 't', date_trunc('month', now() - interval '3 months'), gen_random_uuid(), 1 from generate_series(1, 2);
		insert into keep.tenant_hours (tenant_id, environment_id, hour, run, evaluations, prefetches, reasons, clients)
		values ('t', 'e', date_trunc('hour', now() - interval '3 days'), gen_random_uuid(), 1, 0, '{}', '{}')`,
	)
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	// a test function replaces the database's clock
	config.ConnConfig.RuntimeParams["search_path"] = "public, pg_catalog"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	client, err := jobs.Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	s := stores{pool: pool, keepings: keepings{jobs: client}}
	r := readSide{meter: usage.New(pool, nil, time.Now)}
	added := 0
	for _, task := range upkeep(settings.Config{Now: time.Now}, s, r, writeSide{tenancies: &tenants.Tenancies{}}) {
		if !strings.HasPrefix(task.Name, "add up ") {
			continue
		}
		added++
		if err := task.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "apart") {
			t.Errorf("%s: %v", task.Name, err)
		}
	}
	var rows, days int
	if err := pool.QueryRow(t.Context(), `select (select count(*) from keep.evaluations), (select count(*) from keep.use_days)`).
		Scan(&rows, &days); err != nil {
		t.Fatal(err)
	}
	if added != 2 || rows != 2 || days != 0 {
		t.Errorf("of %d tasks, %d rows of a month are left, want 2, and %d days are added up", added, rows, days)
	}
}
