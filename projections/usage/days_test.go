package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A day of more hours than are read at once has one row a flag, with all hours of the flag in it.
func TestDayOfManyHoursIsSummedWhole(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.clock = time.Date(2026, 3, 16, 2, 0, 0, 0, time.UTC)
	const flags = 100
	_, err := c.pool.Exec(t.Context(), `insert into keep.flag_hours
		(tenant_id, hour, flag_key, life, environment_id, evaluations, prefetches, run, reasons, outcomes, clients)
		select 't', '2026-03-15Z'::timestamptz + h * interval '1 hour', 'f' || to_char(f, 'FM0000'), 1, 'e', 1, 2, gen_random_uuid(),
			'{"OFF":1}', '{"o":1}', json_build_object('client', json_build_array(1, h))
		from generate_series(1, $1) f, generate_series(0, 23) h`, flags)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.node().SumDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	var days, whole int
	err = c.pool.QueryRow(t.Context(), `select count(*), count(*) filter (where evaluations = 24 and prefetches = 48
		and reasons::jsonb = '{"OFF":24}' and outcomes::jsonb = '{"o":24}' and clients::jsonb = '{"client":[24,23,0]}') from keep.flag_days`).Scan(&days, &whole)
	if err != nil || days != flags || whole != flags {
		t.Errorf("%d flags have a day, %d of them a whole one (%v); want %d", days, whole, err, flags)
	}
}

// addHour adds the hour of a flag with outcomes and clients as JSON.
func (c *cluster) addHour(hour int, key, outcomes, clients string) {
	c.t.Helper()
	_, err := c.pool.Exec(c.t.Context(), `insert into keep.flag_hours
		(tenant_id, hour, flag_key, life, environment_id, evaluations, prefetches, run, reasons, outcomes, clients)
		values ('t', $1, $2, 1, 'e', 1, 0, gen_random_uuid(), '{}', $3, $4)`,
		c.clock.Truncate(Daily).Add(time.Duration(hour)*time.Hour), key, outcomes, clients)
	if err != nil {
		c.t.Fatal(err)
	}
}

// sumDay sums the day of the clock, and returns a column of a flag's day.
func (c *cluster) sumDay(key, column string) (text string) {
	c.t.Helper()
	c.clock = c.clock.Add(2 * Daily)
	if err := c.node().SumDays(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	c.clock = c.clock.Add(-2 * Daily)
	if err := c.pool.QueryRow(c.t.Context(), `select `+column+` from keep.flag_days where flag_key = $1`, key).
		Scan(&text); err != nil {
		c.t.Fatal(err)
	}
	return text
}

// The time that a client was last seen is the latest of its hours, in whichever order they come.
func TestLastSeenOfADayIsTheLatest(t *testing.T) {
	t.Parallel()
	for i, order := range [][]int64{{1, 5, 3}, {5, 1, 3}, {3, 1, 5}} {
		c := newCluster(t)
		for hour, seen := range order {
			c.addHour(hour, "f", `{}`, fmt.Sprintf(`{"c":[1,%d]}`, seen))
		}
		if got := c.sumDay("f", "clients::jsonb::text"); got != `{"c": [3, 5, 0]}` {
			t.Errorf("order %d: the clients are %s", i, got)
		}
	}
}

// A node whose clock is behind goes on counting on a day that others have added up.
func TestADayIsAddedUpAgainForANodeThatIsBehind(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.clock = time.Date(2026, 2, 1, 1, 30, 0, 0, time.UTC)
	m, behind := c.node(), c.nodeAt(func() time.Time { return c.clock.Add(-2 * time.Hour) })
	for range 2 {
		behind.evaluate("a", "e", "1", "")
		c.flush(behind)
		if err := m.SumDays(t.Context()); err != nil {
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
	c.clock = c.clock.AddDate(0, 0, -1)
	m := c.node()
	c.clock = c.clock.AddDate(0, 0, 1)
	err := pgx.BeginFunc(t.Context(), c.pool, func(tx pgx.Tx) error {
		if err := lockDay(t.Context(), tx, c.clock.Truncate(Daily).AddDate(0, 0, -1)); err != nil {
			return err
		}
		c.clock = c.clock.AddDate(0, 0, -1)
		for i := range pageWindows {
			m.evaluate(fmt.Sprint("flag-", i), "e", "1", "")
		}
		c.clock = c.clock.AddDate(0, 0, 1)
		m.evaluate("a", "e", "1", "")
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
		m.evaluate("a", "e", "1", "")
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
		if err := m.SumDays(t.Context()); (err == nil) != (hours == 0) ||
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
	c.clock = first.AddDate(0, 0, DaysOfHours+3)
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
	m.evaluate("a", "e", "1", "")
	c.flush(m)
	if _, err := pool.Exec(t.Context(), `create function keep.refuse() returns trigger language plpgsql as $$ begin
			if current_setting('statement_timeout') = '1min' then raise 'it has no more time than others'; end if;
			return new; end $$;
		create trigger refuse before insert on keep.flag_days for each row execute function keep.refuse()`); err != nil {
		t.Fatal(err)
	}
	c.clock = c.clock.AddDate(0, 0, 1)
	m.db = pool
	if err := m.SumDays(t.Context()); err != nil {
		t.Error(err)
	}
}

// A node that ended between two pages has written down hours of flags alone.
func TestFlagsWithoutHoursOfTheirTenant(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	for range 3 {
		m.evaluate("a", "e", "1", "")
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
		if err := m.SumDays(t.Context()); err != nil {
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
	c.clock = c.clock.AddDate(0, 0, DaysOfHours)
	want(0, 2)
}

// Of 30 outcomes and 220 clients a day has the most frequent, and one outcome for the rest.
func TestBoundsOfADay(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range 30 {
		c.addHour(i%24, "f", fmt.Sprintf(`{"o%d":%d,"rest":1}`, i, i+1), `{}`)
	}
	for i := range 220 {
		c.addHour(i%24, "f", `{}`, fmt.Sprintf(`{"c%d":[%d,7]}`, i, i+1))
	}
	var outcomes map[string]int64
	if err := json.Unmarshal([]byte(c.sumDay("f", "outcomes")), &outcomes); err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != maxOutcomes+1 || outcomes["o29"] != 30 || outcomes["o10"] != 11 || outcomes["rest"] != 55+30 {
		t.Errorf("the outcomes are %v", outcomes)
	}
	var clients map[string][2]int64
	if err := json.Unmarshal([]byte(c.sumDay("f", "clients")), &clients); err != nil {
		t.Fatal(err)
	}
	if len(clients) != maxDayClients || clients["c219"] != [2]int64{220, 7} || clients["c18"] != [2]int64{} {
		t.Errorf("%d clients are kept: %v", len(clients), clients)
	}
}
