package usage

import (
	"testing"
)

// A flag that serves another value each hour, for years.
func TestOutcomesThatCountNoMoreGo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	for i, value := range []string{"1", "2"} { // a day, and today
		if i > 0 {
			c.clock = c.clock.AddDate(0, 0, 1)
		}
		m.evaluate("a", "e", value, "")
		c.flush(m)
	}
	if _, err := c.pool.Exec(t.Context(), `insert into keep.flag_outcomes (tenant_id, flag_key, life, outcome, value)
		select tenant_id, flag_key, life, 'old ' || n, '0' from (select tenant_id, flag_key, life from keep.flag_outcomes limit 1) f, generate_series(1, $1) n`, manyOutcomes-2); err != nil {
		t.Fatal(err)
	}
	want := func(outcomes int) {
		t.Helper()
		if err := m.SumDays(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := c.rows(t, "flag_outcomes"); n != outcomes {
			t.Errorf("%d outcomes are left, want %d", n, outcomes)
		}
	}
	want(manyOutcomes)
	m.evaluate("a", "e", "3", "")
	c.flush(m)
	c.clock = c.clock.AddDate(0, 0, 1)
	want(3)
}
