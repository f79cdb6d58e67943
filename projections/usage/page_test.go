package usage

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"flagledger/projections/snapshot/evaluation"
)

// A flush looks up known outcomes by their key, also while Postgres has no statistics of the table, or some from when
// it was small.
func TestOutcomesAreFoundByTheirKey(t *testing.T) {
	t.Parallel()
	for _, analyze := range []string{"", "analyze keep.flag_outcomes"} {
		c := newCluster(t)
		m := c.node()
		evaluate := func() {
			for i := range pageWindows {
				m.evaluate(fmt.Sprint("flag-", i), "e", "true", "")
			}
		}
		evaluate()
		c.flush(m)
		if _, err := c.pool.Exec(t.Context(), analyze); err != nil {
			t.Fatal(err)
		}
		c.clock = c.clock.Add(time.Hour)
		evaluate()
		p := m.newPage(m.takePending())
		c.pool.Reset() // a new connection has read nothing yet
		tx, err := c.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if err := tx.SendBatch(t.Context(), p.batch(m.Meter)).Close(); err != nil {
			t.Fatal(err)
		}
		var wholeReads, lookups int
		err = tx.QueryRow(t.Context(), `select seq_scan, idx_scan from pg_stat_xact_user_tables where relname = 'flag_outcomes'`).
			Scan(&wholeReads, &lookups)
		if err != nil || wholeReads > 0 || lookups < pageWindows {
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
		m := c.nodeAt(func() time.Time {
			c.clock = c.clock.Add(of.step)
			return c.clock
		})
		for i := range 5 * pageWindows {
			m.Count("t", m.flag(fmt.Sprint("flag-", i)), "e", serving("true"), "")
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

// A page is full by its windows or their bytes, is larger in a flush that hurries, and has windows of one hour.
func TestPageLength(t *testing.T) {
	windows := func(n, bytes int) (list []*window) {
		for range n {
			w := &window{flag: NewFlag("k", 1), total: &total{}}
			by := &client{}
			by.addCell(&evaluation.Variation{Value: make([]byte, bytes)}, 'F')
			w.clients.Store(by)
			list = append(list, w)
		}
		return list
	}
	two := windows(2, 1)
	two[1].total.hour++
	for _, c := range []struct {
		windows []*window
		hurry   bool
		want    int
	}{
		{windows(pageWindows-1, 1), false, pageWindows - 1},
		{windows(pageWindows+1, 1), false, pageWindows},
		{windows(3, pageBytes), false, 1},
		{windows(3, pageBytes/2), false, 2},
		{windows(hurryFactor*pageWindows+1, 1), true, hurryFactor * pageWindows},
		{windows(hurryFactor+1, pageBytes), true, hurryFactor},
		{two, false, 1},
	} {
		if got := pageLength(c.windows, c.hurry); got != c.want {
			t.Errorf("the page of %d windows has %d of them, want %d; in a hurry: %t", len(c.windows), got, c.want, c.hurry)
		}
	}
}

// What a flush has not written because of an error in the middle is written by the next one, with its outcomes.
func TestAPageThatFails(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	const flags = 5 * pageWindows / 2
	for i := range flags {
		m.evaluate(fmt.Sprint("flag-", i), "e", "true", "")
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
	evaluate := func() {
		for i := range flags {
			key, environment := fmt.Sprintf("checkout.new-flow-%d", i), "0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"
			m.evaluate(key, environment, "true", "")
			m.evaluate(key, environment, "false", "0198c5a1-8a40-7c55-8f1e-0b6f9f3d4c21")
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
		evaluate()
		again = append(again, flush())
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
