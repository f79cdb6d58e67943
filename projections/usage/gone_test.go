package usage

import (
	"strings"
	"testing"
	"time"
)

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

func TestWhatIsGoneLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	for _, key := range []string{"kept", "deleted", "begun again", "not known yet"} {
		for _, environment := range []string{"e", "deleted"} {
			m.evaluate(key, environment, "1", "c")
		}
	}
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
	if err := m.SumDays(t.Context()); err != nil {
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
	m.evaluate("kept", "e", "1", "c") // of a node that has not heard of it
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
	m.prefetch("prefetched", "e")
	m.evaluate("recent", "e", "1", "c")
	c.flush(m)
	c.clock = c.clock.Add(flagGrace + time.Hour)
	m.prefetch("recent", "e")
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

// Usage of a flag's present life stays, also if its environments are not told apart.
func TestUsageOfPresentLifeStays(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.node()
	for life := range uint64(2) {
		for _, environment := range []string{"e", ""} {
			m.flags["k"] = NewFlag("k", uint32(life+1))
			m.evaluate("k", environment, "1", "")
		}
	}
	c.flush(m)
	c.clock = c.clock.Add(flagGrace + time.Hour)
	if err := m.SumDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	there := present{"t": {environments: []string{"e"}, flags: map[string]uint64{"k": 2}}}
	if err := m.RemoveGone(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"flag_hours": 2, "flag_days": 2, "flag_uses": 2, "flag_outcomes": 1} {
		if n := c.rows(t, table+` where life = 2`); n != want || c.rows(t, table) != want {
			t.Errorf("%s has %d rows of the present life and %d in all, want %d", table, n, c.rows(t, table), want)
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
	if err := m.SumDays(t.Context()); err != nil {
		t.Error(err)
	}
}
