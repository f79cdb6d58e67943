package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/migrations/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t testing.TB, pool *pgxpool.Pool) *Client {
	t.Helper()
	c, err := Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run starts a node that runs jobs until the test ends or stop is called.
func run(t testing.TB, c *Client, w Work) (stop func()) {
	t.Helper()
	if w.Attempted == nil {
		w.Attempted = func(string, Outcome) {}
	}
	w.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Run(ctx, w); err != nil {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// eventually waits up to five minutes for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// states counts the jobs of a kind by their state.
func states(t testing.TB, pool *pgxpool.Pool, kind string) map[string]int {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select state::text, count(*) from jobs.river_job where kind = $1 group by 1`,
		kind)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]int{}
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			t.Fatal(err)
		}
		found[state] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// One node runs a task, once in its interval, even if another takes over.
func TestATaskIsRunOnceForAllNodes(t *testing.T) {
	pool := pgtest.Pool(t)
	var runs, sentinels atomic.Int64
	daily := Task{"daily", 24 * time.Hour, func(context.Context) error { runs.Add(1); return nil }}
	w := Work{Upkeep: []Task{daily}}
	stops := []func(){run(t, open(t, pool), w), run(t, open(t, pool), w)}
	eventually(t, "the task has been run", func() bool { return runs.Load() == 1 })
	for _, stop := range stops {
		stop()
	}
	// Another node starts its tasks when it leads. A task that only this node knows shows that it does.
	run(t, open(t, pool),
		Work{Upkeep: []Task{daily, {"sentinel", time.Hour, func(context.Context) error { sentinels.Add(1); return nil }}}})
	eventually(t, "another node leads", func() bool { return sentinels.Load() == 1 })
	if n := runs.Load(); n != 1 {
		t.Errorf("the task was run %d times", n)
	}
}

// A failing task is retried a few times, and each attempt's error is recorded.
func TestATaskThatFails(t *testing.T) {
	pool := pgtest.Pool(t)
	var failed, completed atomic.Int64
	run(t, open(t, pool), Work{
		Upkeep: []Task{{"fragile", time.Hour, func(context.Context) error {
			if failed.Load() == 0 {
				return errors.New("not yet")
			}
			return nil
		}}},
		Attempted: func(kind string, outcome Outcome) {
			if kind != "upkeep" {
				t.Errorf("the job is a %q", kind)
			}
			switch outcome {
			case Failed:
				failed.Add(1)
			case Completed:
				completed.Add(1)
			default:
				t.Errorf("an attempt was %s", outcome)
			}
		},
	})
	eventually(t, "the task succeeds", func() bool { return completed.Load() == 1 })
	if n := failed.Load(); n != 1 {
		t.Errorf("%d attempts failed", n)
	}
	eventually(t, "the job is done", func() bool { return states(t, pool, "upkeep")["completed"] == 1 })
}

// A stopping node waits a limited time for its running jobs. Another node completes the others, and the interrupted run
// does not count as an attempt.
func TestAJobThatOutlastsItsNodeIsDoneByAnother(t *testing.T) {
	pool := pgtest.Pool(t)
	underWay := make(chan struct{})
	var interrupted, completed atomic.Int64
	stop := run(t, open(t, pool), Work{
		Upkeep: []Task{{"long", time.Hour, func(ctx context.Context) error {
			close(underWay)
			<-ctx.Done()
			return ctx.Err()
		}}},
		Attempted: func(_ string, outcome Outcome) {
			if outcome == Interrupted {
				interrupted.Add(1)
			}
		},
	})
	<-underWay
	stop()
	if got := states(t, pool, "upkeep"); got["available"] != 1 || interrupted.Load() != 1 {
		t.Errorf("the jobs are %v, %d attempts were interrupted", got, interrupted.Load())
	}
	run(t, open(t, pool),
		Work{Upkeep: []Task{{"long", time.Hour, func(context.Context) error { completed.Add(1); return nil }}}})
	eventually(t, "another node does it", func() bool { return completed.Load() == 1 })
}

// A task that failed and later succeeded needs no attention.
func TestATaskThatWasGivenUpAndIsDoneSinceDoesNotFail(t *testing.T) {
	pool := pgtest.Pool(t)
	c := open(t, pool)
	insert := func(task, state string) {
		t.Helper()
		_, err := pool.Exec(
			t.Context(),
			`insert into jobs.river_job (kind, args, queue, max_attempts, attempt, state, finalized_at)
			values ('upkeep', jsonb_build_object('task', $1::text), 'upkeep', 3, 3, $2::jobs.river_job_state, now())`,
			task,
			state,
		)
		if err != nil {
			t.Fatal(err)
		}
	}
	failing := func(want int) {
		t.Helper()
		counts, err := c.Counts(t.Context())
		if err != nil || len(counts) != 1 || counts[0].Failing != want {
			t.Errorf("counted are %+v, %v; want %d failing", counts, err, want)
		}
	}
	insert("fragile", "completed")
	insert("fragile", "discarded")
	insert("sound", "completed")
	failing(1)
	insert("fragile", "completed")
	failing(0)
}
