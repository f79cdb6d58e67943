package usage

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/projections/models/modelstest"
)

// ofMetrics is a database with the uses of a flag in each of the last 720 hours, in three environments by two runs, and
// with those of 20,000 flags in two on each of the last 30 days and in the hours of today.
func ofMetrics(b *testing.B) (pool *pgxpool.Pool, now time.Time) {
	pool = modelstest.Pool(b)
	modelstest.Run(
		b,
		pool,
		modelstest.NewFlags(
			`from (select t, 'flag-' || n, 1 from unnest(array['t', 'many']) t, generate_series(1, 20000) n) f (tenant, key, life)`,
		)+`
		insert into keep.flag_outcomes select 't', 'flag-1', 1, 'o' || n, 'v' || n, 'name', 'true' from generate_series(1, 4) n;
		create function pg_temp.clients(n int) returns json language sql as $$
			select json_object_agg('0198c5a1-8e3f-7a21-b4c6-6d2f8a0c4e' || i, json_build_array(1000 + i, 1773300000)) from generate_series(10, 9 + n) i $$;
		insert into keep.flag_hours (tenant_id, hour, flag_key, life, environment_id, run, evaluations, prefetches, reasons, outcomes, clients)
			select 't', '2026-03-14T15:00Z'::timestamptz - h * interval '1 hour', 'flag-1', 1, 'e' || e, gen_random_uuid(), 4000, 12, '{"RULE_MATCH":3000,"FALLTHROUGH":1000}',
				'{"o1":1000,"o2":1000,"o3":1000,"o4":1000}', (select pg_temp.clients(10)) from generate_series(0, 719) h, generate_series(1, 3) e, generate_series(1, 2) r;
		insert into keep.flag_days (tenant_id, day, flag_key, life, environment_id, evaluations, prefetches, reasons, outcomes, clients)
			select 't', '2026-03-14'::date - d, 'flag-1', 1, 'e' || e, 4000, 12, '{"RULE_MATCH":3000,"FALLTHROUGH":1000}'::json, '{"o1":1000,"o2":1000,"o3":1000,"o4":1000}'::json, (select pg_temp.clients(10))
			from generate_series(1, 30) d, generate_series(1, 3) e
			union all select 'many', '2026-03-14'::date - d, 'flag-' || n, 1, 'e' || e, 4000 + n, 12, '{"RULE_MATCH":3000,"FALLTHROUGH":1000}', '{"o1":2000,"o2":2000}', (select pg_temp.clients(3))
			from generate_series(1, 30) d, generate_series(1, 2) e, generate_series(1, 20000) n;
		insert into keep.flag_hours (tenant_id, hour, flag_key, life, environment_id, run, evaluations, prefetches, reasons, outcomes, clients)
			select 'many', '2026-03-14T15:00Z'::timestamptz - h * interval '1 hour', 'flag-' || n, 1, 'e1', gen_random_uuid(), 4000, 12, '{"RULE_MATCH":3000,"FALLTHROUGH":1000}',
				'{"o1":2000,"o2":2000}', (select pg_temp.clients(3)) from generate_series(0, 15) h, generate_series(1, 20000) n;
		insert into keep.tenant_days (tenant_id, day, environment_id, evaluations, prefetches, reasons, clients)
			select 'many', '2026-03-14'::date - d, 'e' || e, 4000, 12, '{"RULE_MATCH":3000}', (select pg_temp.clients(80)) from generate_series(1, 30) d, generate_series(1, 2) e;
		insert into keep.tenant_hours (tenant_id, hour, environment_id, run, evaluations, prefetches, reasons, clients)
			select 'many', '2026-03-14T15:00Z'::timestamptz - h * interval '1 hour', 'e1', gen_random_uuid(), 4000, 12, '{"RULE_MATCH":3000}', (select pg_temp.clients(80)) from generate_series(0, 719) h;
		insert into keep.use_days select t, '2026-03-14'::date - d from unnest(array['t', 'many']) t, generate_series(1, 30) d`,
	)
	for _, table := range []string{"flag_hours", "flag_days", "tenant_hours", "tenant_days", "flag_outcomes", "use_days"} {
		modelstest.Run(b, pool, "vacuum analyze keep."+table)
	}
	modelstest.Run(b, pool, "vacuum analyze read.flags")
	return pool, time.Date(2026, 3, 14, 15, 9, 0, 0, time.UTC)
}

func BenchmarkMetrics(b *testing.B) {
	pool, now := ofMetrics(b)
	q := New(pool, nil, time.Now)
	filter := func(tenant string, step time.Duration, from time.Time) MetricsFilter {
		period, err := AlignPeriod(step, from, time.Time{}, now)
		if err != nil {
			b.Fatal(err)
		}
		return MetricsFilter{Period: period, TenantID: tenant, Environments: []string{"e1", "e2", "e3"}, Now: now}
	}
	month := now.Add(-719 * Hourly)
	for _, c := range []struct {
		name string
		read func() (points int, err error)
	}{
		{"flag/24 hours", func() (int, error) {
			m, err := q.FlagMetrics(b.Context(), filter("t", Hourly, time.Time{}), "flag-1")
			return len(m.Points), err
		}},
		{"flag/720 hours", func() (int, error) {
			m, err := q.FlagMetrics(b.Context(), filter("t", Hourly, month), "flag-1")
			return len(m.Points), err
		}},
		{"flag/30 days", func() (int, error) {
			m, err := q.FlagMetrics(b.Context(), filter("t", Daily, time.Time{}), "flag-1")
			return len(m.Points), err
		}},
		{"tenant/30 days", func() (int, error) {
			m, err := q.TenantMetrics(b.Context(), filter("many", Daily, time.Time{}))
			return len(m.Points), err
		}},
		{"tenant/720 hours", func() (int, error) {
			m, err := q.TenantMetrics(b.Context(), filter("many", Hourly, month))
			return len(m.Points), err
		}},
		{"flags evaluated most/24 hours", func() (int, error) {
			top, err := q.TopFlags(b.Context(), filter("many", Hourly, time.Time{}))
			return len(top), err
		}},
		{"flags evaluated most/30 days", func() (int, error) {
			top, err := q.TopFlags(b.Context(), filter("many", Daily, time.Time{}))
			return len(top), err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n, err := c.read(); err != nil || n < 20 {
					b.Fatalf("%d: %v", n, err)
				}
			}
		})
	}
}
