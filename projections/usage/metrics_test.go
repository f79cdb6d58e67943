package usage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"flagledger/migrations/database"
	"flagledger/projections/models/modelstest"
)

// pointCounts is what metrics have in their points that are not empty: when, evaluations and prefetches.
func pointCounts(m Metrics) string {
	var all []string
	for _, p := range m.Points {
		if p.Evaluations+p.Prefetches > 0 {
			all = append(all, fmt.Sprint(p.Time.Format("02T15 "), p.Evaluations, " ", p.Prefetches))
		}
	}
	return strings.Join(all, ", ")
}

func TestMetricsAreReadFromHoursAndDays(t *testing.T) {
	t.Parallel()
	pool := modelstest.Pool(t)
	const uses = `(environment_id, evaluations, prefetches, reasons, outcomes, clients, tenant_id, flag_key, life`
	modelstest.Run(t, pool, modelstest.NewFlags(`from (values ('t', 'k', 3), ('t', 'other', 1)) f (tenant, key, life)`)+`
		insert into read.oauth_clients values ('c1', 't', 'Checkout', '{}', true, now()), ('c2', 'another tenant', 'secret', '{}', false, '2026-03-01');
		insert into read.flag_variations values ('t', 'k', 'v1', 1, 0, 'today', 'true', '', 0), ('t', 'k', 'v9', 2, 0, 'never served', 'true', '', 0);
		insert into read.audit select 't', n, 2 * n, 3 * n, gen_random_uuid(), '2026-03-01', 'flag.variation_removed', 'flag', 'k', 'a name', null,
			json_build_object('variations.v2', json_build_object('from', json_build_object('name', 'name ' || n), 'to', null)), 'user', 'u', '', '', n, '' from generate_series(1, 2) n;
		insert into keep.flag_outcomes values ('t', 'k', 3, 'v1:a', 'v1', 'then', '{"size": 1.50}'), ('t', 'k', 3, 'v1:b', 'v1', 'then', '2'), ('t', 'k', 3, 'v2:a', 'v2', 'then', 'null');
		insert into keep.flag_outcomes (tenant_id, flag_key, life, outcome, value) values ('t', 'k', 3, 'value', '"x"'), ('t', 'k', 1, 'old', '"old"'), ('t2', 'k', 3, 'value', '"of another tenant"');
		insert into keep.flag_hours `+uses+`, hour, run) select e.* , h.hour::timestamptz, gen_random_uuid() from (values
			('2026-03-13T10:00Z', 'prod'), ('2026-03-13T10:00Z', 'prod'), ('2026-03-13T10:00Z', 'dev'), ('2026-03-13T10:00Z', ''), ('2026-03-13T10:00Z', 'gone'), ('2026-03-13T12:00Z', 'prod'), ('2026-03-14T15:00Z', 'prod')
		) h (hour, environment) cross join lateral (values
			(h.environment, 2, 1, '{"OFF": 1, "RULE_MATCH": 1}'::json, '{"v1:a": 1, "v1:b": 2, "value": 3, "v2:a": 1, "rest": 4}'::json, ('{"": [1, ' || extract(epoch from h.hour::timestamptz)::bigint || '], "c1": [2, 7], "c2": [1, 7]}')::json, 't', 'k', 3),
			(h.environment, 50, 50, '{}', '{"old": 50}', '{}', 't', 'k', 1), (h.environment, 70, 0, '{}', '{}', '{}', 't', 'other', 1), (h.environment, 90, 0, '{}', '{}', '{}', 't', 'deleted', 1),
			(h.environment, 1000, 0, '{}', '{"value": 1000}', '{}', 't2', 'k', 3)
		) e;
		insert into keep.flag_days `+uses+`, day) values
			('prod', 70000, 0, '{"OFF": 70000}', '{}', '{"old": [70000, 7]}', 't', 'k', 3, '2026-02-02'),
			('prod', 5000, 0, '{}', '{}', '{"32 days ago": [5000, 7]}', 't', 'k', 3, '2026-02-10'),
			('prod', 5, 2, '{"OFF": 5}', '{"value": 5}', '{"c1": [5, 1773300000]}', 't', 'k', 3, '2026-03-12'),
			('prod', 1000, 0, '{}', '{}', '{"c1": [1000, 7]}', 't', 'k', 3, '2026-03-13'); -- which is being made
		insert into keep.use_days values ('t', '2026-02-02'), ('t', '2026-02-10'), ('t', '2026-03-12'), ('t', '2026-03-11'), ('t2', '2026-03-13');
		insert into keep.tenant_hours (tenant_id, hour, environment_id, run, evaluations, prefetches, reasons, clients)
			select 't', '2026-03-13T10:00Z', e, gen_random_uuid(), 200, 1, '{"OFF": 200}', '{"": [200, 9]}' from unnest(array['prod', 'gone']) e;
		insert into keep.tenant_days (tenant_id, day, environment_id, evaluations, prefetches, reasons, clients) values ('t', '2026-03-12', 'prod', 9, 0, '{}', '{}'), ('t2', '2026-03-12', 'prod', 1000, 0, '{}', '{}')`)
	q := New(pool, nil, time.Now)
	now := time.Date(2026, 3, 14, 15, 9, 0, 0, time.UTC)
	filter := func(step time.Duration, environment string, from string) MetricsFilter {
		at, _ := time.Parse(time.DateOnly, from)
		period, err := AlignPeriod(step, at, time.Time{}, now)
		if err != nil {
			t.Fatal(err)
		}
		return MetricsFilter{
			Period:       period,
			TenantID:     "t",
			Environments: []string{"prod", "dev"},
			Environment:  environment,
			Now:          now,
		}
	}
	flag := func(f MetricsFilter) Metrics {
		m, err := q.FlagMetrics(t.Context(), f, "k")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	want := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	hourly := flag(filter(Hourly, "", "2026-03-13"))
	want("hours", pointCounts(hourly), "13T10 8 4, 13T12 2 1, 14T15 2 1")
	want("by day, one of which is not complete", pointCounts(flag(filter(Daily, "", ""))), "12T00 5 2, 13T00 10 5, 14T00 2 1")
	want("in an environment", pointCounts(flag(filter(Hourly, "dev", "2026-03-13"))), "13T10 2 1")
	want("the sum", []int64{hourly.Evaluations, hourly.Prefetches}, "[12 6]")
	want("reasons", hourly.Points[10].Reasons, map[string]int64{"OFF": 4, "RULE_MATCH": 4})
	shown := q.FlagPoints("t", "k", hourly)
	points, err := shown.Next(t.Context())
	if err != nil || shown.More() {
		t.Fatalf("%d of %d points: %v", len(points), len(hourly.Points), err)
	}
	var outcomes []string
	for _, o := range points[10].Outcomes {
		if o.Outcome == nil {
			outcomes = append(outcomes, fmt.Sprint("rest ", o.Count))
			continue
		}
		text := fmt.Sprint(string(o.Value), " ", o.Count)
		if o.VariationID != nil {
			text = *o.VariationID + " " + *o.VariationName + " " + text
		}
		outcomes = append(outcomes, text)
	}
	want("outcomes", strings.Join(outcomes, ", "), `"x" 12, v1 today 2 12, v2 name 2 null 4, rest 16`)
	clients := func(m Metrics) string {
		var all []string
		for _, c := range m.Clients {
			who := "people"
			if c.ClientID != nil {
				if who = *c.ClientID; c.Name != nil {
					who += " " + *c.Name
				}
			}
			all = append(all, fmt.Sprint(who, " ", c.Evaluations, " ", c.LastSeen.Unix()))
		}
		return strings.Join(all, ", ")
	}
	people := fmt.Sprint(time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC).Unix())
	want("clients", clients(hourly), "c1 Checkout 12 7, people 6 "+people+", c2 6 7")
	want("clients of complete days and hours, by hour", clients(flag(filter(Hourly, "", "2026-03-11"))),
		"c1 Checkout 17 1773300000, people 6 "+people+", c2 6 7")
	long := flag(filter(Hourly, "", "2026-02-02"))
	want("hours that are no longer kept", []any{long.Evaluations, clients(long)},
		[]any{12, "c1 Checkout 17 1773300000, people 6 " + people + ", c2 6 7"})
	want("days of then", pointCounts(flag(filter(Daily, "", "2026-02-02"))),
		"02T00 70000 0, 10T00 5000 0, 12T00 5 2, 13T00 10 5, 14T00 2 1")
	want("clients by day", clients(flag(filter(Daily, "", ""))), "c1 Checkout 17 1773300000, people 6 "+people+", c2 6 7")

	for key, of := range map[string]MetricsFilter{"none": filter(Hourly, "", ""), "k": {Period: hourlyOf(now), TenantID: "t3", Now: now}} {
		if _, err := q.FlagMetrics(t.Context(), of, key); !errors.Is(err, database.ErrNotFound) {
			t.Errorf("a flag that is not there: %v", err)
		}
	}
	tenant, err := q.TenantMetrics(t.Context(), filter(Daily, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	want("a tenant", pointCounts(tenant), "12T00 9 0, 13T00 400 2")
	want("its clients", clients(tenant), "people 400 9")
	if tenant, err = q.TenantMetrics(t.Context(), filter(Hourly, "prod", "2026-03-13")); err != nil {
		t.Fatal(err)
	}
	want("a tenant's environment", pointCounts(tenant), "13T10 200 1")
	for _, c := range []struct {
		filter MetricsFilter
		want   string
	}{{filter(Daily, "", ""), "[{other 420} {k 17}]"}, {filter(Hourly, "", "2026-03-12"), "[{other 420} {k 17}]"}, {filter(Daily, "dev", ""), "[{other 70} {k 2}]"}, {filter(Hourly, "", "2026-03-14"), "[{other 70} {k 2}]"}} {
		top, err := q.TopFlags(t.Context(), c.filter)
		if err != nil {
			t.Fatal(err)
		}
		want("the flags that were evaluated most", top, c.want)
	}

	modelstest.Run(t, pool,
		`update keep.flag_outcomes set value = to_json(repeat('x', 9000000)) where outcome = 'value' and tenant_id = 't'`)
	m, err := q.FlagMetrics(t.Context(), filter(Daily, "", ""), "k")
	if err != nil {
		t.Errorf("27 MB of values: %v", err)
	}
	pieces := q.FlagPoints("t", "k", m)
	for read := 0; pieces.More() || read != len(m.Points); {
		points, err := pieces.Next(t.Context())
		if read += len(points); err != nil || len(points) == 0 {
			t.Fatalf("%d points of large values are read, and %d: %v", read, len(points), err)
		}
		large := 0
		for _, p := range points {
			for _, o := range p.Outcomes {
				if o.Outcome != nil && len(o.Value) > 9_000_000 {
					large++
				}
			}
		}
		if large > 1 {
			t.Errorf("%d large values are in memory at once", large)
		}
	}
	modelstest.Run(t, pool,
		`update keep.flag_outcomes set value = to_json(repeat('x', 12000000)) where outcome = 'value' and tenant_id = 't'`)
	if _, err := q.FlagMetrics(t.Context(), filter(Daily, "", ""), "k"); !errors.Is(err, ErrLargeOutcomes) {
		t.Errorf("36 MB of values: %v", err)
	}
}

func hourlyOf(now time.Time) Period {
	p, _ := AlignPeriod(Hourly, time.Time{}, time.Time{}, now)
	return p
}

// However many outcomes a flag has had, those of few hours are known at once, and each point shows what was served most
// in it.
func TestOutcomesAreReadInParts(t *testing.T) {
	t.Parallel()
	pool := modelstest.Pool(t)
	const hours = 100
	now := time.Date(2026, 3, 14, 15, 9, 0, 0, time.UTC)
	modelstest.Run(t, pool, modelstest.NewFlags(`from (values ('t', 'k', 1)) f (tenant, key, life)`)+fmt.Sprintf(`
		insert into keep.flag_outcomes (tenant_id, flag_key, life, outcome, value) select 't', 'k', 1, h || ' ' || n, to_json(h || ' ' || n) from generate_series(0, %[1]d) h, generate_series(1, 30) n;
		insert into keep.flag_hours (tenant_id, hour, flag_key, life, environment_id, run, evaluations, prefetches, reasons, outcomes, clients)
			select 't', '2026-03-14T15:00Z'::timestamptz - h * interval '1 hour', 'k', 1, 'prod', gen_random_uuid(), 465, 0, '{}',
				(select json_object_agg(h || ' ' || n, n) from generate_series(1, 30) n), '{}' from generate_series(0, %[1]d) h`, hours-1))
	q := New(pool, nil, time.Now)
	for _, step := range []time.Duration{Hourly, Daily} {
		period, err := AlignPeriod(step, now.Add(-(hours-1)*Hourly), time.Time{}, now)
		if err != nil {
			t.Fatal(err)
		}
		filter := MetricsFilter{Period: period, TenantID: "t", Environments: []string{"prod"}, Now: now}
		m, err := q.FlagMetrics(t.Context(), filter, "k")
		if err != nil || m.Evaluations != 465*hours {
			t.Fatalf("%d evaluations: %v", m.Evaluations, err)
		}
		for i, point := range m.Points {
			var sum int64
			for _, o := range point.Outcomes {
				sum += o.Count
			}
			if sum != point.Evaluations || len(point.Outcomes) != maxOutcomes+1 || point.Outcomes[maxOutcomes].Outcome != nil ||
				point.Outcomes[0].Count != 30 {
				t.Errorf("point %d has %d evaluations, and %d of %d outcomes", i, point.Evaluations, sum, len(point.Outcomes))
			}
		}
		err = q.readMetrics(t.Context(), filter, func(r *metricsReader) error {
			r.key, r.life = "k", 1
			read := 0
			for days, hours := range r.parts() {
				known, err := r.outcomes(t.Context(), days, hours)
				if err != nil {
					return err
				}
				if len(known) > 30*24 {
					t.Errorf("%d outcomes are known at once", len(known))
				}
				read += len(known)
			}
			if read != 30*hours {
				t.Errorf("%d outcomes are read", read)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
