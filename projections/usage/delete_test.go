package usage

import (
	"testing"
	"time"
)

func TestOldHoursAndDaysGo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	for range 3 {
		m.evaluate("a", "e", "1", "")
		c.flush(m)
		c.clock = c.clock.AddDate(0, 0, 1)
	}
	c.clock = time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC) // the 31st day after the first
	if err := m.SumDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hours, days := c.rows(t, "flag_hours"), c.rows(t, "flag_days"); hours != 2 || days != 3 {
		t.Errorf(
			"there are %d hours and %d days, want the hours of the last 30 days, and all days, though the first was added up late",
			hours, days,
		)
	}
	c.clock = time.Date(2027, 3, 9, 1, 0, 0, 0, time.UTC) // the 401st day after the second
	if err := m.SumDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"flag_hours": 0, "tenant_hours": 0, "flag_days": 1, "tenant_days": 1, "use_days": 1} {
		if n := c.rows(t, table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
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
