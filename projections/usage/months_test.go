package usage

import (
	"testing"
	"time"
)

// Evaluations since a restart are counted over months, nodes and what is not written down yet.
func TestSinceRestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first, second := c.node(), c.node()
	want := func(m *node, n int64) {
		t.Helper()
		if got, err := m.SinceRestart(t.Context(), "a"); err != nil || got != n {
			t.Errorf("%d evaluations since the restart, want %d: %v", got, n, err)
		}
	}
	want(first, 0)
	first.repeat("a", 3)
	second.repeat("a", 4)
	first.repeat("b", 100)
	c.flush(second)
	want(first, 7)
	c.clock = time.Date(2026, 2, 2, 12, 0, 0, 0, time.UTC)
	first.repeat("a", 5)
	c.flush(first)
	c.flush(first) // which forgets January
	want(first, 12)
	want(second, 12)
	asked := time.Date(2026, 2, 2, 11, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{asked, asked.Add(-time.Minute)} {
		if err := second.Restart(t.Context(), "a", at); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[time.Time]bool{asked: true, asked.Add(-time.Hour): true, asked.Add(time.Millisecond): false} {
		if done, err := first.RestartedSince(t.Context(), "a", at); err != nil || done != want {
			t.Errorf("a cleanup asked for at %v is done: %v, %v", at, done, err)
		}
	}
	want(first, 0)
	first.repeat("a", 2)
	want(first, 2)
	c.clock = time.Date(2026, 4, 2, 12, 0, 0, 0, time.UTC)
	c.flush(first)
	if err := first.SumMonths(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(first, 2)
	want(second, 2)
}
