package usage

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"flagledger/migrations/database"
	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// cluster is nodes over one database, with one clock. Its network can be cut.
type cluster struct {
	t     testing.TB
	pool  *pgxpool.Pool
	clock time.Time

	mu          sync.Mutex
	cut         bool // nothing can connect
	connections map[net.Conn]bool
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t, clock: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), connections: map[net.Conn]bool{}}
	config, err := pgxpool.ParseConfig(pgtest.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.cut {
			return nil, errors.New("the network is down")
		}
		conn, err := dial(ctx, network, address)
		if err == nil {
			c.connections[conn] = true
		}
		return conn, err
	}
	if c.pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.pool.Close)
	return c
}

// outage cuts all connections, and lets none be made until it is over.
func (c *cluster) outage(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = on
	for conn := range c.connections {
		_ = conn.Close()
	}
	clear(c.connections)
}

func (c *cluster) flush(m *node) {
	c.t.Helper()
	if err := m.flush(c.t.Context(), time.Minute, false); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) wantOn(m *node, tenant string, want int64) {
	c.t.Helper()
	if got, err := m.Evaluations(c.t.Context(), tenant); err != nil || got != want {
		c.t.Errorf("%s has %d evaluations, want %d: %v", tenant, got, want, err)
	}
}

func TestTwoNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first, second := c.node(), c.node()
	first.repeat("a", 3)
	first.repeat("b", 100)
	second.repeat("a", 4)
	c.wantOn(first, "a", 3)
	c.wantOn(second, "a", 4)
	c.flush(first)
	c.wantOn(first, "a", 3)
	c.wantOn(second, "a", 7)
	for range 3 {
		first.repeat("a", 1)
		c.flush(first)
		c.flush(second)
	}
	c.wantOn(first, "a", 10)
	c.wantOn(second, "a", 10)
	c.wantOn(second, "b", 100)
	c.wantOn(second, "c", 0)
}

func TestARestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, end := context.WithCancel(t.Context())
	before := c.node()
	var running sync.WaitGroup
	running.Go(func() { before.Run(ctx, time.Minute, slog.New(slog.DiscardHandler)) })
	before.repeat("a", 5)
	end()
	running.Wait()
	after := c.node()
	c.wantOn(after, "a", 5)
	after.repeat("a", 1)
	c.wantOn(after, "a", 6)
}

func TestAMonthsEnd(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m, other := c.node(), c.node()
	count := func(n int) {
		m.repeat("a", n)
		other.repeat("a", n)
		other.repeat("b", n)
	}
	count(1)
	c.clock = time.Date(2026, 1, 31, 23, 59, 59, 999, time.UTC)
	count(2)
	c.flush(m)
	c.flush(other)
	count(3) // written down in February
	c.wantOn(m, "a", 9)
	c.clock = c.clock.Add(time.Second)
	c.wantOn(m, "a", 0)
	count(10)
	c.flush(m)
	c.flush(other)
	c.wantOn(m, "a", 20)
	c.clock = time.Date(2026, 2, 1, 0, 30, 0, 0, time.FixedZone("", -8*60*60)) // of another zone
	c.flush(m)
	if n := len(m.months); n != 1 {
		t.Errorf("%d counts are remembered after a month's end", n)
	}
	months := func() (all map[string]int64) {
		rows, err := c.pool.Query(t.Context(), `select tenant_id || ' ' || month, count from keep.evaluations order by run`)
		if err != nil {
			t.Fatal(err)
		}
		all = map[string]int64{}
		for rows.Next() {
			var name string
			var n int64
			if err := rows.Scan(&name, &n); err != nil {
				t.Fatal(err)
			}
			all[name] += n
		}
		return all
	}
	rows := func() (n int) {
		if err := c.pool.QueryRow(t.Context(), `select count(*) from keep.evaluations`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := months()
	if before["a 2026-01-01"] != 12 || before["b 2026-01-01"] != 6 || before["a 2026-02-01"] != 20 {
		t.Errorf("counted by month: %v", before)
	}
	for _, step := range []struct{ month, rows int }{{2, 6}, {3, 5}, {4, 4}, {4, 4}, {5, 4}} {
		c.clock = time.Date(2026, time.Month(step.month), 1, 0, 0, 1, 0, time.UTC)
		for range 2 {
			if err := m.SumMonths(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := rows(); n != step.rows {
			t.Errorf("in month %d there are %d rows, want %d", step.month, n, step.rows)
		}
		if after := months(); len(after) != len(before) || after["a 2026-01-01"] != 12 || after["b 2026-01-01"] != 6 ||
			after["a 2026-02-01"] != 20 {
			t.Errorf("adding up makes %v of %v", after, before)
		}
	}
}

func TestAnOutage(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m, other := c.node(), c.node()
	m.repeat("a", 1)
	c.flush(m)
	c.outage(true)
	for range 3 {
		m.repeat("a", 1)
		if err := m.flush(t.Context(), time.Minute, false); err == nil {
			t.Fatal("it writes during an outage")
		}
	}
	if _, err := m.Evaluations(t.Context(), "a"); !errors.Is(err, database.ErrUnavailable) {
		t.Errorf("usage during an outage: %v", err)
	}
	c.outage(false)
	c.wantOn(m, "a", 4)
	c.flush(m)
	c.wantOn(other, "a", 4)
}

// Whatever nodes count, write down, write down again because they did not hear that it was done, and whenever they end:
// what each shows is what it has counted and what others have written down.
func TestCounts(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		if _, err := c.pool.Exec(ctx, `truncate keep.evaluations`); err != nil {
			t.Fatal(err)
		}
		type counting struct {
			*node
			counted, written int64
		}
		nodes := []*counting{{node: c.node()}, {node: c.node()}}
		var ended int64
		pick := func(t *rapid.T) *counting { return rapid.SampledFrom(nodes).Draw(t, "node") }
		write := func(n *counting) {
			if err := n.flush(ctx, time.Minute, false); err != nil {
				t.Fatal(err)
			}
			n.written = n.counted
		}
		t.Repeat(map[string]func(*rapid.T){
			"count": func(t *rapid.T) {
				n, k := pick(t), rapid.IntRange(0, 5).Draw(t, "evaluations")
				n.repeat("a", k)
				n.counted += int64(k)
			},
			"write": func(t *rapid.T) { write(pick(t)) },
			"write without hearing of it": func(t *rapid.T) {
				n := pick(t)
				write(n)
				for _, of := range n.months {
					of.stored = -1
				}
			},
			"restart": func(t *rapid.T) {
				n := pick(t)
				write(n)
				ended += n.counted
				*n = counting{node: c.node()}
			},
			"": func(t *rapid.T) {
				for i, n := range nodes {
					want := ended + n.counted + nodes[1-i].written
					if got, err := n.Evaluations(ctx, "a"); err != nil || got != want {
						t.Fatalf("node %d shows %d evaluations, want %d: %v", i, got, want, err)
					}
				}
			},
		})
	})
}
