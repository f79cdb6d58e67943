package metering

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"flagledger/commands/keep/metering/counted"
)

// memory is what a node has counted, as the snapshot keeps it.
type memory struct {
	uses    map[string]*remembered
	changed []*remembered
}

type remembered struct {
	counted.Use
	m       *memory
	changed bool
}

func (r *remembered) Retry() {
	for i := range r.Served {
		r.Served[i].New = true
	}
	r.note()
}

func (r *remembered) note() {
	if !r.changed {
		r.changed = true
		r.m.changed = append(r.m.changed, r)
	}
}

func (r *remembered) count() (n uint64) {
	for _, s := range r.Served {
		n += s.Count
	}
	return n
}

func (m *memory) TakeUses() iter.Seq[counted.Use] {
	return func(yield func(counted.Use) bool) {
		changed := m.changed
		m.changed = nil
		for i, r := range changed {
			r.changed = false
			u := r.Use
			u.Served, u.Callers, u.Source = slices.Clone(u.Served), slices.Clone(u.Callers), r
			for i := range r.Served {
				r.Served[i].New = false
			}
			if !yield(u) {
				m.changed = append(m.changed, changed[i+1:]...)
				return
			}
		}
	}
}

func (m *memory) UsesWritten(time.Time) {}

func (m *memory) use(key, environment string, life uint64, at time.Time) *remembered {
	hour := at.Truncate(time.Hour)
	name := fmt.Sprint(key, " ", environment, " ", life, " ", hour)
	if m.uses == nil {
		m.uses = map[string]*remembered{}
	}
	r := m.uses[name]
	if r == nil {
		r = &remembered{
			Use: counted.Use{TenantID: "t", FlagKey: key, Life: life, EnvironmentID: environment, Hour: hour},
			m:   m,
		}
		m.uses[name] = r
	}
	r.note()
	return r
}

// evaluate counts an evaluation that served a value to a client.
func (m *memory) evaluate(key, environment, value, client string, at time.Time) {
	for _, of := range []struct{ key, value string }{{key, value}, {"", ""}} {
		life := uint64(1)
		if of.key == "" {
			life = 0
		}
		r := m.use(of.key, environment, life, at)
		r.Evaluated = at
		i := slices.IndexFunc(r.Served, func(s counted.Served) bool { return string(s.Value) == of.value })
		if i < 0 {
			i = len(r.Served)
			r.Served = append(r.Served, counted.Served{Value: []byte(of.value), Reason: "FALLTHROUGH", New: true})
		}
		r.Served[i].Count++
		i = slices.IndexFunc(r.Callers, func(c counted.Caller) bool { return c.ClientID == client })
		if i < 0 {
			i = len(r.Callers)
			r.Callers = append(r.Callers, counted.Caller{ClientID: client})
		}
		r.Callers[i].Count++
		r.Callers[i].Seen = at
	}
}

func (m *memory) prefetch(key, environment string, at time.Time) {
	for of, life := range map[string]uint64{key: 1, "": 0} {
		r := m.use(of, environment, life, at)
		r.Prefetched = at
		r.Prefetches++
	}
}

// sums adds up the JSON of a column of rows, by the values of others.
func (c *cluster) sums(t failer, query string) map[string]int64 {
	rows, err := c.pool.Query(c.t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	var name, text string
	_, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		var counts map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &counts); err != nil {
			return err
		}
		for of, n := range counts {
			var list []int64
			if json.Unmarshal(n, &list) != nil {
				list = make([]int64, 1)
				if err := json.Unmarshal(n, &list[0]); err != nil {
					return err
				}
			}
			all[strings.TrimSpace(name+" "+of)] += list[0]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

type failer interface{ Fatal(...any) }

// What nodes count, write down, write down again because they did not hear that it was done, cannot write during an
// outage, and whenever they end: the hours, and the days made of them, hold what was counted.
func TestUses(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := time.Date(2026, 3, 14, 22, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		if _, err := c.pool.Exec(
			ctx,
			`truncate keep.flag_hours, keep.flag_days, keep.tenant_hours, keep.tenant_days, keep.use_days, keep.flag_outcomes, keep.flag_uses, keep.evaluations`,
		); err != nil {
			t.Fatal(err)
		}
		c.clock = began
		nodes := []*Meter{c.node(), c.node()}
		hours, clients, days := map[string]int64{}, map[string]int64{}, map[string]int64{}
		pick := func(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "node") }
		write := func(n int) {
			if err := nodes[n].flush(ctx, time.Minute, false); err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"evaluate": func(t *rapid.T) {
				key, environment := rapid.SampledFrom([]string{"a", "b"}).
					Draw(t, "key"),
					rapid.SampledFrom([]string{"e1", "e2"}).
						Draw(t, "environment")
				value, client := rapid.SampledFrom([]string{"1", "2"}).
					Draw(t, "value"),
					rapid.SampledFrom([]string{"", "c1"}).
						Draw(t, "client")
				nodes[pick(t)].uses.(*memory).evaluate(key, environment, value, client, c.clock)
				hours[fmt.Sprint(key, environment, c.clock.Format(" 02 15 "), value)]++
				days[fmt.Sprint(key, environment, c.clock.Format(" 02 "), value)]++
				clients[strings.TrimSpace(c.clock.Format("02 15 ")+client)]++
			},
			"an hour later": func(*rapid.T) { c.clock = c.clock.Add(time.Hour) },
			"write":         func(t *rapid.T) { write(pick(t)) },
			"write without hearing of it": func(t *rapid.T) {
				n := pick(t)
				write(n)
				for _, r := range nodes[n].uses.(*memory).uses {
					r.Retry()
				}
			},
			"an outage": func(t *rapid.T) {
				n := pick(t)
				waiting := len(nodes[n].uses.(*memory).changed)
				if waiting == 0 {
					return
				}
				c.outage(true)
				err := nodes[n].flush(ctx, time.Minute, false)
				c.outage(false)
				c.pool.Reset() // connections that nobody used meanwhile
				if err == nil || len(nodes[n].uses.(*memory).changed) != waiting {
					t.Fatal("of ", waiting, " uses ", len(nodes[n].uses.(*memory).changed), " are kept in an outage: ", err)
				}
			},
			"restart": func(t *rapid.T) {
				n := pick(t)
				write(n)
				nodes[n] = c.node()
			},
			"add up days": func(t *rapid.T) {
				if err := nodes[pick(t)].AddUpDays(ctx); err != nil {
					t.Fatal(err)
				}
			},
			"": func(*rapid.T) {},
		})
		write(0)
		write(1)
		values := map[string]string{}
		rows, err := c.pool.Query(ctx, `select outcome, value::text from keep.flag_outcomes`)
		if err != nil {
			t.Fatal(err)
		}
		var outcome, value string
		if _, err := pgx.ForEachRow(
			rows, []any{&outcome, &value}, func() error { values[outcome] = value; return nil },
		); err != nil {
			t.Fatal(err)
		}
		named := func(all map[string]int64) map[string]int64 {
			by := map[string]int64{}
			for name, n := range all {
				i := strings.LastIndex(name, " ") + 1
				by[name[:i]+values[name[i:]]] += n
			}
			return by
		}
		if got := named(
			c.sums(
				t,
				`select flag_key || environment_id || to_char(hour at time zone 'UTC', ' DD HH24'), outcomes::text from keep.flag_hours`,
			),
		); !maps.Equal(got, hours) {
			t.Fatalf("the hours have %v, want %v", got, hours)
		}
		if got := c.sums(
			t, `select to_char(hour at time zone 'UTC', 'DD HH24'), clients::text from keep.tenant_hours`,
		); !maps.Equal(got, clients) {
			t.Fatalf("the tenant's clients have %v, want %v", got, clients)
		}
		c.clock = c.clock.Add(25 * time.Hour)
		for range 2 {
			if err := nodes[0].AddUpDays(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if got := named(
			c.sums(t, `select flag_key || environment_id || to_char(day, ' DD'), outcomes::text from keep.flag_days`),
		); !maps.Equal(got, days) {
			t.Fatalf("the days have %v, want %v", got, days)
		}
	})
}

// last is a row of keep.flag_uses.
func (c *cluster) last(key string) string {
	c.t.Helper()
	var row string
	err := c.pool.QueryRow(c.t.Context(), `select concat_ws(' ', to_char(last_evaluated at time zone 'UTC', 'HH24:MI:SS'), to_char(last_prefetched at time zone 'UTC', '"prefetched" HH24:MI'), o.value,
			to_char(outcome_hour at time zone 'UTC', '"in" HH24'), to_char(varied_hour at time zone 'UTC', '"varied" HH24'))
		from keep.flag_uses left join keep.flag_outcomes o using (tenant_id, flag_key, life, outcome) where flag_key = $1`, key).
		Scan(&row)
	if err != nil {
		c.t.Fatal(err)
	}
	return row
}

func TestWhatAFlagServedLast(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first, second := c.node(), c.node()
	at := func(hour, minute int) time.Time { return time.Date(2026, 1, 31, hour, minute, 0, 0, time.UTC) }
	want := func(want string) {
		t.Helper()
		c.flush(first)
		c.flush(second)
		c.flush(first)
		if got := c.last("a"); got != want {
			t.Errorf("the flag was used %q, want %q", got, want)
		}
	}
	one, two := first.uses.(*memory), second.uses.(*memory)
	one.prefetch("a", "e", at(1, 5))
	want("prefetched 01:05")
	one.evaluate("a", "e", "1", "", at(2, 10))
	want("02:10:00 prefetched 01:05 1 in 02")
	two.evaluate("a", "e", "1", "", at(3, 10))
	want("03:10:00 prefetched 01:05 1 in 03")
	one.evaluate("a", "e", "2", "", at(5, 0))
	want("05:00:00 prefetched 01:05 2 in 05 varied 03")
	two.evaluate("a", "e", "3", "", at(4, 0)) // which is written down late
	want("05:00:00 prefetched 01:05 2 in 05 varied 04")
	one.evaluate("a", "e", "2", "", at(7, 0))
	one.prefetch("a", "e", at(7, 1))
	want("07:00:00 prefetched 07:01 2 in 07 varied 04")
	two.evaluate("a", "e", "1", "", at(7, 30)) // in the same hour
	want("07:30:00 prefetched 07:01 1 in 07 varied 07")
}

func TestAnHourKeepsTheValueThatAVariationHadThen(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	node := c.node()
	evaluate := func(hour int, value string) {
		r := node.uses.(*memory).use("a", "e", 1, time.Date(2026, 1, 31, hour, 0, 0, 0, time.UTC))
		r.Served = []counted.Served{
			{
				VariationID:   "v",
				VariationName: "name",
				Value:         []byte(value),
				Reason:        "FALLTHROUGH",
				New:           true,
				Count:         r.count() + 1,
			},
		}
		c.flush(node)
	}
	evaluate(1, "1")
	evaluate(2, "1")
	evaluate(2, "2") // which counts for all of the hour
	evaluate(3, "2")
	rows, err := c.pool.Query(
		t.Context(),
		`select to_char(hour at time zone 'UTC', 'HH24 ') || o.value || ' ' || n.value from keep.flag_hours
		cross join lateral json_each_text(outcomes::json) n join keep.flag_outcomes o on o.outcome = n.key order by hour`,
	)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"01 1 1", "02 2 2", "03 2 1"}; !slices.Equal(got, want) {
		t.Errorf("the hours have %q, want %q", got, want)
	}
}

// present is what there is, by tenant the environments and flags with their lives.
type present map[string]struct {
	environments []string
	flags        map[string]uint64
}

func (p present) Complete() bool { return len(p) > 0 }

func (p present) EnvironmentIDs(tenantID string) ([]string, bool) {
	t, ok := p[tenantID]
	return t.environments, ok
}

func (p present) FlagLife(tenantID, key string) (uint64, bool) {
	life, ok := p[tenantID].flags[key]
	return life, ok
}

func (c *cluster) rows(t testing.TB, table string) (n int) {
	t.Helper()
	if err := c.pool.QueryRow(t.Context(), `select count(*) from keep.`+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWhatIsGoneLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	used := m.uses.(*memory)
	for _, key := range []string{"kept", "deleted", "begun again", "not known yet"} {
		for _, environment := range []string{"e", "deleted"} {
			used.evaluate(key, environment, "1", "c", c.clock)
		}
	}
	m.Count("t", 8)
	c.flush(m)
	there := present{"t": {[]string{"e"}, map[string]uint64{"kept": 1, "begun again": 7, "not known yet": 0}}}
	remove := func() {
		t.Helper()
		if err := m.RemoveGone(t.Context(), there); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	if n := c.rows(t, "flag_hours"); n != 8 {
		t.Errorf("%d hours are left of what another node may know of, want 8", n)
	}
	c.clock = c.clock.Add(25 * time.Hour)
	if err := m.AddUpDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	remove()
	for table, want := range map[string]int{"flag_hours": 2, "flag_days": 2, "flag_uses": 2, "flag_outcomes": 2, "tenant_hours": 2, "tenant_days": 2} {
		if n := c.rows(t, table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	delete(there, "t")
	remove()
	if n := c.rows(t, "tenant_days"); n != 2 {
		t.Errorf("%d days are left of what a node removes that knows nothing yet, want 2", n)
	}
	there["another"] = present{}["another"]
	used.evaluate("kept", "e", "1", "c", c.clock) // of a node that has not heard of it
	c.flush(m)
	remove()
	if n := c.rows(t, "tenant_hours"); n != 3 {
		t.Errorf("the tenant has %d hours, want those of before: it may be new", n)
	}
	c.clock = c.clock.Add(3 * time.Hour)
	remove()
	for _, table := range tablesOfTenants {
		if n := c.rows(t, table); n != 0 {
			t.Errorf("%s has %d rows of a tenant that is gone", table, n)
		}
	}
}

// Usage of a deleted flag goes if the flag was only prefetched, and stays while its last prefetch is recent.
func TestUsageOfPrefetchedFlagIsRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	used := m.uses.(*memory)
	used.prefetch("prefetched", "e", c.clock)
	used.evaluate("recent", "e", "1", "c", c.clock)
	c.flush(m)
	c.clock = c.clock.Add(flagGrace + time.Hour)
	used.prefetch("recent", "e", c.clock)
	c.flush(m)
	if err := m.RemoveGone(t.Context(), present{"t": {environments: []string{"e"}}}); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"flag_hours": 2, "flag_uses": 1, "flag_outcomes": 1} {
		if n := c.rows(t, table); n != want {
			t.Errorf("%s has %d rows, want the %d of the flag that was prefetched lately", table, n, want)
		}
	}
}

// One tenant's use cannot be removed: that of others is, however many rows it has.
func TestWhatIsGoneIsRemovedThoughSomeCannotBe(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	run := func(sql string, arguments ...any) {
		t.Helper()
		if _, err := c.pool.Exec(t.Context(), sql, arguments...); err != nil {
			t.Fatal(err)
		}
	}
	const many = 2*deletedAtOnce + 1
	run(
		`insert into keep.flag_hours (tenant_id, flag_key, life, environment_id, hour, run, evaluations, prefetches, reasons, outcomes, clients)
		select t, 'f' || n, 1, 'e', $1, gen_random_uuid(), 1, 0, '{}', '{}', '{}' from generate_series(1, $2) n, unnest(array['a', 'b']) t where t = 'b' or n = 1`,
		c.clock,
		many,
	)
	run(`create function keep.refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$`)
	run(
		`create trigger refuse before delete on keep.flag_hours for each row when (old.tenant_id = 'a') execute function keep.refuse()`,
	)
	err := m.RemoveGone(t.Context(), present{"another": {}})
	if err == nil || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("what cannot be removed is told as %v", err)
	}
	if n := c.rows(t, "flag_hours"); n != 1 {
		t.Errorf("%d rows are left, want the one that cannot be removed", n)
	}
	if err := m.AddUpDays(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOldHoursAndDaysGo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	for range 3 {
		m.uses.(*memory).evaluate("a", "e", "1", "", c.clock)
		c.flush(m)
		c.clock = c.clock.AddDate(0, 0, 1)
	}
	c.clock = time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC) // the 31st day after the first
	if err := m.AddUpDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hours, days := c.rows(t, "flag_hours"), c.rows(t, "flag_days"); hours != 2 || days != 3 {
		t.Errorf(
			"there are %d hours and %d days, want the hours of the last 30 days, and all days, though the first was added up late",
			hours, days,
		)
	}
	c.clock = time.Date(2027, 3, 9, 1, 0, 0, 0, time.UTC) // the 401st day after the second
	if err := m.AddUpDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"flag_hours": 0, "tenant_hours": 0, "flag_days": 1, "tenant_days": 1, "use_days": 1} {
		if n := c.rows(t, table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
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

// Who deletes rows beside another returns when none are left, and waits for those that the other holds.
func TestNoRowsAreLeftWhereTwoDelete(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	if _, err := c.pool.Exec(
		t.Context(),
		`insert into keep.flag_hours (tenant_id, flag_key, life, environment_id, hour, run, evaluations, prefetches, reasons, outcomes, clients)
		select 't', 'f' || n, 1, 'e', $1, gen_random_uuid(), 1, 0, '{}', '{}', '{}' from generate_series(1, $2) n`,
		c.clock,
		deletedAtOnce+1,
	); err != nil {
		t.Fatal(err)
	}
	other, err := c.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(
		t.Context(),
		`delete from keep.flag_hours where ctid = any(array(select ctid from keep.flag_hours where tenant_id = 't' limit $1))`,
		deletedAtOnce,
	); err != nil {
		t.Fatal(err)
	}
	forgotten := make(chan error, 1)
	go func() { forgotten <- m.ForgetTenant(t.Context(), "t") }()
	for waits := false; !waits; {
		if err := c.pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).
			Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-forgotten; err != nil {
		t.Fatal(err)
	}
	if n := c.rows(t, "flag_hours"); n != 0 {
		t.Errorf("%d rows are left of a tenant that is forgotten", n)
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

// A flag that serves another value each hour, for years.
func TestOutcomesThatCountNoMoreGo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	for i, value := range []string{"1", "2"} { // a day, and today
		if i > 0 {
			c.clock = c.clock.AddDate(0, 0, 1)
		}
		m.uses.(*memory).evaluate("a", "e", value, "", c.clock)
		c.flush(m)
	}
	if _, err := c.pool.Exec(t.Context(), `insert into keep.flag_outcomes (tenant_id, flag_key, life, outcome, value)
		select tenant_id, flag_key, life, 'old ' || n, '0' from (select tenant_id, flag_key, life from keep.flag_outcomes limit 1) f, generate_series(1, $1) n`, manyOutcomes-2); err != nil {
		t.Fatal(err)
	}
	want := func(outcomes int) {
		t.Helper()
		if err := m.AddUpDays(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := c.rows(t, "flag_outcomes"); n != outcomes {
			t.Errorf("%d outcomes are left, want %d", n, outcomes)
		}
	}
	want(manyOutcomes)
	m.uses.(*memory).evaluate("a", "e", "3", "", c.clock)
	c.flush(m)
	c.clock = c.clock.AddDate(0, 0, 1)
	want(3)
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
