package usage

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/projections/usage/counted"
)

// A day of more hours than are read at once has one row a flag, with all hours of the flag in it.
func TestDayOfManyHoursIsSummedWhole(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.clock = time.Date(2026, 3, 16, 2, 0, 0, 0, time.UTC)
	const flags = fetchSize/24 + 2 // the hours of one flag lie on both sides of a fetch
	_, err := c.pool.Exec(t.Context(), `insert into keep.flag_hours
		(tenant_id, hour, flag_key, life, environment_id, evaluations, prefetches, run, reasons, outcomes, clients)
		select 't', '2026-03-15Z'::timestamptz + h * interval '1 hour', 'f' || to_char(f, 'FM0000'), 1, 'e', 1, 2, gen_random_uuid(),
			'{"OFF":1}', '{"o":1}', json_build_object('client', json_build_array(1, h))
		from generate_series(1, $1) f, generate_series(0, 23) h`, flags)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.node().AddUpDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	var days, whole int
	err = c.pool.QueryRow(t.Context(), `select count(*), count(*) filter (where evaluations = 24 and prefetches = 48
		and reasons = '{"OFF":24}' and outcomes = '{"o":24}' and clients = '{"client":[24,23]}') from keep.flag_days`).Scan(&days, &whole)
	if err != nil || days != flags || whole != flags {
		t.Errorf("%d flags have a day, %d of them a whole one (%v); want %d", days, whole, err, flags)
	}
}

// The time that a client was last seen is the latest of its hours, in whichever order they are summed.
func TestLastSeenOfADayIsTheLatest(t *testing.T) {
	for i, order := range [][]int64{{1, 5, 3}, {5, 1, 3}, {3, 1, 5}} {
		var day counts
		for _, seen := range order {
			day.add(&counts{clients: tallies{{name: "c", n: 1, last: seen}}})
		}
		if got := fmt.Sprint(day.clients); got != "[{c 3 5}]" {
			t.Errorf("order %d: the clients are %s", i, got)
		}
	}
}

// A node whose clock is behind goes on counting on a day that others have added up.
func TestADayIsAddedUpAgainForANodeThatIsBehind(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.clock = time.Date(2026, 2, 1, 1, 30, 0, 0, time.UTC)
	m, behind := c.node(), New(c.pool, &memory{}, func() time.Time { return c.clock.Add(-2 * time.Hour) })
	for range 2 {
		behind.uses.(*memory).evaluate("a", "e", "1", "", behind.now())
		c.flush(behind)
		if err := m.AddUpDays(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var flag, tenant int
	if err := c.pool.QueryRow(t.Context(), `select (select sum(evaluations) from keep.flag_days), (select sum(evaluations) from keep.tenant_days)`).
		Scan(&flag, &tenant); err != nil {
		t.Fatal(err)
	}
	if flag != 2 || tenant != 2 {
		t.Errorf("the day has %d evaluations of the flag and %d of the tenant, want 2", flag, tenant)
	}
}

// A day that takes long to add up keeps nobody from writing down the running one.
func TestARunningDayWaitsForNoOther(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	err := pgx.BeginFunc(t.Context(), c.pool, func(tx pgx.Tx) error {
		if err := lockDay(t.Context(), tx, c.clock.Truncate(aDay).AddDate(0, 0, -1)); err != nil {
			return err
		}
		for i := range pageUses {
			m.uses.(*memory).evaluate(fmt.Sprint("flag-", i), "e", "1", "", c.clock.AddDate(0, 0, -1))
		}
		m.uses.(*memory).evaluate("a", "e", "1", "", c.clock)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		flushed := make(chan error, 1)
		go func() { flushed <- m.flush(ctx, time.Minute, false) }()
		for c.rows(t, "flag_hours") == 0 {
			select {
			case err := <-flushed:
				return fmt.Errorf("the flush ended with nothing written: %w", err)
			default:
			}
		}
		cancel()
		if err := <-flushed; err == nil {
			t.Error("yesterday was written while it was added up")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// One day cannot be added up: others are, and its hours stay until days of its age go too.
func TestDaysAreAddedUpThoughOneCannotBe(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	first := c.clock
	for range 3 {
		m.uses.(*memory).evaluate("a", "e", "1", "", c.clock)
		c.flush(m)
		c.clock = c.clock.AddDate(0, 0, 1)
	}
	if _, err := c.pool.Exec(
		t.Context(),
		fmt.Sprintf(`create function keep.refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;
		create trigger refuse before insert on keep.flag_days for each row when (new.day = '%s') execute function keep.refuse()`, first.Format(time.DateOnly)),
	); err != nil {
		t.Fatal(err)
	}
	want := func(hours, days int) {
		t.Helper()
		if err := m.AddUpDays(t.Context()); (err == nil) != (hours == 0) ||
			err != nil && !strings.Contains(err.Error(), "not this one") {
			t.Errorf("a day that cannot be added up is told as %v", err)
		}
		for table, want := range map[string]int{"flag_hours": hours, "tenant_hours": hours, "flag_days": days, "use_days": days} {
			if n := c.rows(t, table); n != want {
				t.Errorf("%s has %d rows, want %d", table, n, want)
			}
		}
	}
	want(3, 2)
	c.clock = first.AddDate(0, 0, counted.DaysOfHours+3)
	want(1, 2)
	c.clock = first.AddDate(0, 0, dailyRetentionDays+3)
	want(0, 0)
}

// Adding up a large day takes longer than other statements may.
func TestALargeDayHasMoreTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	config := c.pool.Config()
	config.ConnConfig.RuntimeParams["statement_timeout"] = "1min"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	m := c.node()
	m.uses.(*memory).evaluate("a", "e", "1", "", c.clock)
	c.flush(m)
	if _, err := pool.Exec(t.Context(), `create function keep.refuse() returns trigger language plpgsql as $$ begin
			if current_setting('statement_timeout') = '1min' then raise 'it has no more time than others'; end if;
			return new; end $$;
		create trigger refuse before insert on keep.flag_days for each row execute function keep.refuse()`); err != nil {
		t.Fatal(err)
	}
	c.clock = c.clock.AddDate(0, 0, 1)
	m.db = pool
	if err := m.AddUpDays(t.Context()); err != nil {
		t.Error(err)
	}
}

// A node that ended between two pages has written down hours of flags alone.
func TestFlagsWithoutHoursOfTheirTenant(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	for range 3 {
		m.uses.(*memory).evaluate("a", "e", "1", "", c.clock)
		c.clock = c.clock.AddDate(0, 0, 1)
	}
	c.flush(m)
	for table, left := range map[string]string{"tenant_hours": `where hour < '2026-02-01' or hour >= '2026-02-02'`, "flag_hours": `where hour >= '2026-02-01' and hour < '2026-02-02'`} {
		if _, err := c.pool.Exec(t.Context(), `delete from keep.`+table+` `+left); err != nil {
			t.Fatal(err)
		}
	}
	want := func(hours, days int) {
		t.Helper()
		if err := m.AddUpDays(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h, d, all := c.rows(t, "flag_hours"), c.rows(t, "flag_days"), c.rows(t, "use_days"); h != hours || d != days ||
			all != days+1 {
			t.Errorf("there are %d hours and %d days of flags, and %d days are added up; want %d, %d, %d", h, d, all, hours,
				days, days+1)
		}
	}
	want(2, 2)
	if _, err := c.pool.Exec(t.Context(), `delete from keep.tenant_hours`); err != nil {
		t.Fatal(err)
	}
	c.clock = c.clock.AddDate(0, 0, counted.DaysOfHours)
	want(0, 2)
}

// Of 30 outcomes and 120 clients a day keeps the most frequent, and adds up the other outcomes.
func TestBoundsOfADay(t *testing.T) {
	var all counts
	for i := range 30 {
		all.add(
			&counts{
				evaluations: int64(i + 1),
				outcomes:    tallies{{name: fmt.Sprint("o", i), n: int64(i + 1)}, {name: counted.RestOutcome, n: 1}},
			},
		)
	}
	for i := range 120 {
		all.add(&counts{clients: tallies{{name: fmt.Sprint("c", i), n: int64(i + 1), last: 7}}})
	}
	all.bound()
	if len(all.outcomes) != counted.MaxOutcomes+1 || all.outcomes[0] != (tally{name: "o29", n: 30}) ||
		all.outcomes[counted.MaxOutcomes] != (tally{name: counted.RestOutcome, n: 55 + 30}) {
		t.Errorf("the outcomes are %v", all.outcomes)
	}
	if len(all.clients) != maxClients || all.clients[0] != (tally{"c119", 120, 7}) {
		t.Errorf("%d clients are kept, first %v", len(all.clients), all.clients[0])
	}
}
