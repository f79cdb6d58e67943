package usage

import (
	"fmt"
	"testing"
	"time"

	"flagledger/projections/models/modelstest"
)

// require counts evaluations on behalf of another flag that served a value.
func (n *node) require(key, environment, value string, times int) {
	n.catchUp()
	for range times {
		n.CountRequired("t", n.flag(key), environment, serving(value))
	}
}

// requiredIn returns what a table counts of the flag a: evaluations, reasons, outcomes and clients.
func (c *cluster) requiredIn(table string) (row string) {
	c.t.Helper()
	var evaluations, clients int
	var reasons string
	err := c.pool.QueryRow(c.t.Context(), `select sum(evaluations), count(*) filter (where clients <> '{}'),
		coalesce(sum((reasons::json ->> 'REQUIRED')::bigint), 0)::text from keep.`+table+` where tenant_id = 't'`).
		Scan(&evaluations, &clients, &reasons)
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("%d evaluations, %s required, %d with clients", evaluations, reasons, clients)
}

// Nodes count on after a restart; hours, days and metrics hold what all of them have counted.
func TestRequiredFlagsAreCountedBesideEvaluations(t *testing.T) {
	t.Parallel()
	c := &cluster{t: t, pool: modelstest.Pool(t), clock: time.Date(2026, 1, 30, 12, 0, 0, 0, time.UTC)}
	first := c.node()
	first.require("a", "e", "true", 3)
	c.flush(first)
	c.flush(first)
	restarted := c.node()
	restarted.require("a", "e", "true", 2)
	c.flush(restarted)
	const want = "0 evaluations, 5 required, 0 with clients"
	for _, table := range []string{"flag_hours", "tenant_hours"} {
		if got := c.requiredIn(table); got != want {
			t.Errorf("%s: %s, want %s", table, got, want)
		}
	}
	c.wantOn(restarted, "t", 0)
	c.clock = c.clock.AddDate(0, 0, 1)
	if err := restarted.SumDays(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"flag_days", "tenant_days"} {
		if got := c.requiredIn(table); got != want {
			t.Errorf("%s: %s, want %s", table, got, want)
		}
	}
	period, err := AlignPeriod(Daily, c.clock.AddDate(0, 0, -1), time.Time{}, c.clock)
	if err != nil {
		t.Fatal(err)
	}
	m, err := restarted.TenantMetrics(t.Context(), MetricsFilter{Period: period, TenantID: "t", Now: c.clock})
	if err != nil {
		t.Fatal(err)
	}
	if m.Evaluations != 0 || m.Required != 5 || m.Points[0].Required != 5 || len(m.Clients) != 0 {
		t.Errorf("metrics have %+v", m)
	}
}

func TestACallCountsRequiredFlagsOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.node()
	call := &Call{}
	call.Add(n.flag("b"), serving("1"))
	call.AddRequired(n.flag("a"), serving("true"))
	for range 2 {
		n.CountCall(call, "t", "e", "")
	}
	c.flush(n)
	if got, want := c.requiredIn("flag_hours"), "1 evaluations, 1 required, 1 with clients"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.wantOn(n, "t", 1)
}

// Whether a flag always serves the same includes what it serves on behalf of others.
func TestOutcomesOnBehalfOfOthersVaryAFlag(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.node()
	at := func(hour int) { c.clock = time.Date(2026, 1, 31, hour, 0, 0, 0, time.UTC) }
	want := func(want string) {
		t.Helper()
		c.flush(n)
		var required *time.Time
		if err := c.pool.QueryRow(t.Context(), `select last_required from keep.flag_uses where flag_key = 'a'`).
			Scan(&required); err != nil {
			t.Fatal(err)
		}
		got := c.last("a")
		if required != nil {
			got += required.UTC().Format(" required 15")
		}
		if got != want {
			t.Errorf("the flag was used %q, want %q", got, want)
		}
	}
	at(1)
	n.require("a", "e", "1", 1)
	want("1 in 01 required 01")
	at(2)
	n.evaluate("a", "e", "1", "")
	want("02:00:00 1 in 02 required 01")
	at(3)
	n.require("a", "e", "2", 1)
	want("02:00:00 2 in 03 varied 02 required 03")
	n.evaluate("a", "e", "1", "")
	want("03:00:00 1 in 03 varied 03 required 03")
}

func TestReportsCountRequiredFlags(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.node()
	count := Reported{
		FlagKey: "a", Life: 1, EnvironmentID: "e", Result: *serving("true"), Required: true,
		Hour: c.clock.Truncate(time.Hour), Count: 7,
	}
	for _, id := range []string{"1", "1", "2"} {
		if _, err := n.Report(t.Context(), "t", "c", id, []Reported{count}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := c.requiredIn("flag_hours"), "0 evaluations, 14 required, 0 with clients"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
