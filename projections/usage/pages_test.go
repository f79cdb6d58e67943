package usage

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"flagledger/projections/usage/counted"
)

// A flush looks up known outcomes by their key, also while Postgres has no statistics of the table, or some from when
// it was small.
func TestOutcomesAreFoundByTheirKey(t *testing.T) {
	t.Parallel()
	for _, analyze := range []string{"", "analyze keep.flag_outcomes"} {
		c := newCluster(t)
		m := c.node()
		evaluate := func() {
			for i := range pageUses {
				m.uses.(*memory).evaluate(fmt.Sprint("flag-", i), "e", "true", "", c.clock)
			}
		}
		evaluate()
		c.flush(m)
		if _, err := c.pool.Exec(t.Context(), analyze); err != nil {
			t.Fatal(err)
		}
		c.clock = c.clock.Add(time.Hour)
		evaluate()
		p := &page{hour: c.clock.Truncate(time.Hour)}
		for u := range m.uses.TakeUses() {
			p.add(u)
		}
		c.pool.Reset() // a new connection has read nothing yet
		tx, err := c.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if err := tx.SendBatch(t.Context(), p.columns().batch(m.run, c.clock)).Close(); err != nil {
			t.Fatal(err)
		}
		var wholeReads, lookups int
		err = tx.QueryRow(t.Context(), `select seq_scan, idx_scan from pg_stat_xact_user_tables where relname = 'flag_outcomes'`).
			Scan(&wholeReads, &lookups)
		if err != nil || wholeReads > 0 || lookups < pageUses {
			t.Errorf("%s: a page read the table as a whole %d times and looked up %d rows by key, %v", analyze, wholeReads,
				lookups, err)
		}
	}
}

// A flush writes 501 uses in small pages, and in one if it hurries, as it does once it has taken long.
func TestPagesOfAFlush(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		step  time.Duration // by which the clock moves each time that it is read
		hurry bool
		want  int
	}{
		{0, false, 6}, {hurryAfter / 1000, false, 6}, {2 * hurryAfter, false, 1}, {0, true, 1},
	} {
		c := newCluster(t)
		m := New(c.pool, &memory{}, func() time.Time {
			c.clock = c.clock.Add(of.step)
			return c.clock
		})
		at := c.clock
		for i := range 5 * pageUses {
			m.uses.(*memory).evaluate(fmt.Sprint("flag-", i), "e", "true", "", at)
		}
		if err := m.flush(t.Context(), time.Minute, of.hurry); err != nil {
			t.Fatal(err)
		}
		var transactions int
		if err := c.pool.QueryRow(t.Context(), `select count(distinct xmin::text) from keep.flag_hours`).
			Scan(&transactions); err != nil ||
			transactions != of.want {
			t.Errorf("%+v: %d transactions have written the flags, %v", of, transactions, err)
		}
	}
}

// A page is full by its uses or its bytes, and larger in a flush that hurries.
func TestFullPage(t *testing.T) {
	for _, c := range []struct {
		uses, bytes int
		hurry, want bool
	}{
		{pageUses - 1, pageBytes - 1, false, false},
		{pageUses, 0, false, true},
		{1, pageBytes, false, true},
		{hurryFactor*pageUses - 1, hurryFactor*pageBytes - 1, true, false},
		{hurryFactor * pageUses, 0, true, true},
		{1, hurryFactor * pageBytes, true, true},
	} {
		p := page{uses: make([]counted.Use, c.uses), bytes: c.bytes}
		if got := p.full(c.hurry); got != c.want {
			t.Errorf("a page of %d uses and %d bytes is full: %t, want %t; in a hurry: %t", c.uses, c.bytes, got, c.want, c.hurry)
		}
	}
}

// What a flush has not written because of an error in the middle is written by the next one, with its outcomes.
func TestAPageThatFails(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	const flags = 5 * pageUses / 2
	for i := range flags {
		m.uses.(*memory).evaluate(fmt.Sprint("flag-", i), "e", "true", "", c.clock)
	}
	if _, err := c.pool.Exec(
		t.Context(), `alter table keep.flag_hours add constraint refused check (flag_key <> 'flag-150')`,
	); err != nil {
		t.Fatal(err)
	}
	if err := m.flush(t.Context(), time.Minute, false); err == nil {
		t.Error("a flush that could not write a page has not failed")
	}
	if n := c.rows(t, "flag_hours"); n == 0 || n >= flags {
		t.Errorf("%d flags are written, want those of the first page", n)
	}
	if _, err := c.pool.Exec(t.Context(), `alter table keep.flag_hours drop constraint refused`); err != nil {
		t.Fatal(err)
	}
	c.flush(m)
	for _, table := range []string{"flag_hours", "flag_uses", "flag_outcomes"} {
		if n := c.rows(t, table); n != flags {
			t.Errorf("%s has %d rows, want %d", table, n, flags)
		}
	}
}

// BenchmarkFlush writes down 20,000 flags that have changed, each evaluated by two clients: for the first time, once
// more, and in the next hour.
func BenchmarkFlush(b *testing.B) {
	const flags = 20_000
	c := newCluster(b)
	m := c.node()
	used := m.uses.(*memory)
	evaluate := func() {
		for i := range flags {
			key, environment := fmt.Sprintf("checkout.new-flow-%d", i), "0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"
			used.evaluate(key, environment, "true", "", c.clock)
			used.evaluate(key, environment, "false", "0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21", c.clock)
		}
	}
	flush := func() float64 {
		began := time.Now()
		c.flush(m)
		return float64(time.Since(began).Milliseconds())
	}
	evaluate()
	first := flush()
	var again, hour []float64
	for b.Loop() {
		c.clock = c.clock.Add(time.Minute)
		for _, r := range used.uses {
			r.Served[0].Count++
			r.Evaluated = c.clock
			r.note()
		}
		again = append(again, flush())
		used.uses = nil
		c.clock = c.clock.Add(time.Hour)
		evaluate()
		hour = append(hour, flush())
	}
	slices.Sort(again)
	slices.Sort(hour)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(first, "first-ms")
	b.ReportMetric(again[len(again)/2], "again-ms")
	b.ReportMetric(hour[len(hour)/2], "next-hour-ms")
}
