package usage

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"flagledger/projections/snapshot/evaluation"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

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
	ctx := t.Context()
	began := time.Date(2026, 3, 14, 22, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		if _, err := c.pool.Exec(
			ctx,
			`truncate keep.flag_hours, keep.flag_days, keep.tenant_hours, keep.tenant_days, keep.use_days, keep.flag_outcomes, keep.flag_uses, keep.evaluations, keep.usage_reports`,
		); err != nil {
			t.Fatal(err)
		}
		c.clock = began
		nodes := []*node{c.node(), c.node()}
		hours, clients, days := map[string]int64{}, map[string]int64{}, map[string]int64{}
		pick := func(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "node") }
		write := func(n int) {
			if err := nodes[n].flush(ctx, time.Minute, false); err != nil {
				t.Fatal(err)
			}
		}
		draw := func(t *rapid.T, what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		count := func(at time.Time, key, environment, value, client string, n int64) {
			hours[fmt.Sprint(key, environment, at.Format(" 02 15 "), value)] += n
			days[fmt.Sprint(key, environment, at.Format(" 02 "), value)] += n
			clients[strings.TrimSpace(at.Format("02 15 ")+client)] += n
		}
		reported := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"evaluate": func(t *rapid.T) {
				key, environment := draw(t, "key", "a", "b"), draw(t, "environment", "e1", "e2")
				value, client := draw(t, "value", "1", "2"), draw(t, "client", "", "c1")
				nodes[pick(t)].evaluate(key, environment, value, client)
				count(c.clock, key, environment, value, client, 1)
			},
			"report twice": func(t *rapid.T) {
				var report []Reported
				for range rapid.IntRange(1, 5).Draw(t, "rows") {
					one := Reported{
						FlagKey: draw(t, "key", "a", "b"), Life: 1, EnvironmentID: draw(t, "environment", "e1", "e2"),
						Result: *serving(draw(t, "value", "1", "2")), ClientID: draw(t, "client", "c1", "c2"),
						Hour:  c.clock.Truncate(time.Hour).Add(-time.Duration(rapid.IntRange(0, 23).Draw(t, "hours ago")) * time.Hour),
						Count: rapid.Int64Range(1, 1000).Draw(t, "count"),
					}
					report = append(report, one)
					count(one.Hour, one.FlagKey, one.EnvironmentID, string(one.Result.Value), one.ClientID, one.Count)
					reported += one.Count
				}
				id := uuid.NewString()
				for _, want := range []bool{true, false} {
					if taken, err := nodes[pick(t)].Report(ctx, "t", "c1", id, report); taken != want || err != nil {
						t.Fatal("a report is taken: ", taken, err)
					}
				}
			},
			"an hour later": func(*rapid.T) { c.clock = c.clock.Add(time.Hour) },
			"write":         func(t *rapid.T) { write(pick(t)) },
			"write without hearing of it": func(t *rapid.T) {
				n := pick(t)
				write(n)
				for w := nodes[n].windows; w != nil; w = w.older {
					nodes[n].queue(w)
				}
			},
			"an outage": func(t *rapid.T) {
				n := pick(t)
				waiting := nodes[n].pendingFlags()
				if waiting == 0 {
					return
				}
				c.outage(true)
				err := nodes[n].flush(ctx, time.Minute, false)
				c.outage(false)
				c.pool.Reset() // connections that nobody used meanwhile
				if err == nil || nodes[n].pendingFlags() != waiting {
					t.Fatal("of ", waiting, " uses ", nodes[n].pendingFlags(), " are kept in an outage: ", err)
				}
			},
			"restart": func(t *rapid.T) {
				n := pick(t)
				write(n)
				nodes[n] = c.node()
			},
			"add up days": func(t *rapid.T) {
				if err := nodes[pick(t)].SumDays(ctx); err != nil {
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
		var ofReports, ofClients int64
		if err := c.pool.QueryRow(ctx, `select coalesce(sum((reasons::json ->> 'REPORTED')::bigint), 0),
			coalesce(sum((select sum((value ->> 2)::bigint) from json_each(clients::json))), 0)
			from keep.tenant_hours`).Scan(&ofReports, &ofClients); err != nil {
			t.Fatal(err)
		}
		if ofReports != reported || ofClients != reported {
			t.Fatalf("%d and by clients %d are marked as reported of %d", ofReports, ofClients, reported)
		}
		c.clock = c.clock.Add(25 * time.Hour)
		for range 2 {
			if err := nodes[0].SumDays(ctx); err != nil {
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
	clocks := [2]time.Time{time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}
	first, second := c.nodeAt(func() time.Time { return clocks[0] }), c.nodeAt(func() time.Time { return clocks[1] })
	at := func(node, hour, minute int) { clocks[node] = time.Date(2026, 1, 31, hour, minute, 0, 0, time.UTC) }
	want := func(want string) {
		t.Helper()
		c.flush(first)
		c.flush(second)
		c.flush(first)
		if got := c.last("a"); got != want {
			t.Errorf("the flag was used %q, want %q", got, want)
		}
	}
	at(0, 1, 5)
	first.prefetch("a", "e")
	want("prefetched 01:05")
	at(0, 2, 10)
	first.evaluate("a", "e", "1", "")
	want("02:10:00 prefetched 01:05 1 in 02")
	at(1, 3, 10)
	second.evaluate("a", "e", "1", "")
	want("03:10:00 prefetched 01:05 1 in 03")
	at(0, 5, 0)
	first.evaluate("a", "e", "2", "")
	want("05:00:00 prefetched 01:05 2 in 05 varied 03")
	at(1, 4, 0)
	second.evaluate("a", "e", "3", "") // which is written down late
	want("05:00:00 prefetched 01:05 2 in 05 varied 04")
	at(0, 7, 0)
	first.evaluate("a", "e", "2", "")
	at(0, 7, 1)
	first.prefetch("a", "e")
	want("07:00:00 prefetched 07:01 2 in 07 varied 04")
	at(1, 7, 30)
	second.evaluate("a", "e", "1", "") // in the same hour
	want("07:30:00 prefetched 07:01 1 in 07 varied 07")
}

func TestAnHourKeepsTheValueThatAVariationHadThen(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.clock = c.clock.Truncate(Daily)
	node := c.node()
	evaluate := func(hour int, value string) {
		c.clock = time.Date(2026, 1, 31, hour, 0, 0, 0, time.UTC)
		node.catchUp()
		v := &evaluation.Variation{ID: "v", Name: "name", Value: []byte(value)}
		node.Count("t", node.flag("a"), "e",
			&evaluation.Result{Variation: v, VariationID: v.ID, Value: v.Value, Reason: evaluation.Fallthrough}, "")
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

func (c *cluster) rows(t testing.TB, table string) (n int) {
	t.Helper()
	if err := c.pool.QueryRow(t.Context(), `select count(*) from keep.`+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
