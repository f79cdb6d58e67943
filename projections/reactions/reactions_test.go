package reactions_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/jobs"
	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/eventstore/esdbtest"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
	"flagledger/projections/reactions"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a log with its jobs.
type world struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store events.Store
	jobs  *jobs.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := pgtest.Migrated(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := postgres.Open(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	client, err := jobs.Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, pool, store, client}
}

// invite appends the fact of an invitation.
func (w *world) invite(memberID string) {
	w.t.Helper()
	stream := events.TenantStream(uuid.NewString())
	e := events.Event{
		ID:       uuid.New(),
		Metadata: events.Metadata{Time: time.Now()},
		Fact:     events.MemberInvited{ID: memberID, Role: events.ViewerRole},
	}
	_, err := w.store.Append(w.t.Context(), stream, 0, []events.Event{e})
	for errors.Is(err, events.ErrUnavailable) { // a broken connection: the append is idempotent
		_, err = w.store.Append(w.t.Context(), stream, 0, []events.Event{e})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) reactions(store events.Store) *reactions.Reactions {
	checkpoint := reactions.NewCheckpoint(w.pool, store, slog.New(slog.NewTextHandler(w.t.Output(), nil)))
	return reactions.New(checkpoint, w.jobs, func(context.Context, string) (bool, error) { return true, nil })
}

// follow makes a node follow the log until the test ends or stop is called.
func (w *world) follow(store events.Store) (r *reactions.Reactions, stop func()) {
	w.t.Helper()
	r = w.reactions(store)
	if err := r.Begin(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	w.t.Cleanup(stop)
	return r, stop
}

// wantJobs waits until exactly these members have jobs.
func (w *world) wantJobs(members ...string) {
	w.t.Helper()
	var found []string
	for deadline := time.Now().Add(time.Minute); ; {
		rows, err := w.pool.Query(w.t.Context(),
			`select args ->> 'memberId' from jobs.river_job where kind = 'mail.member_invitation' order by id`)
		if err != nil {
			w.t.Fatal(err)
		}
		if found, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			w.t.Fatal(err)
		}
		if len(found) >= len(members) || time.Now().After(deadline) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if !slices.Equal(found, members) {
		w.t.Fatalf("there are jobs for %v, want %v", found, members)
	}
}

// followed returns a world whose log a stopped node has followed, with invitations of some members.
func followed(t *testing.T, members ...string) *world {
	t.Helper()
	w := newWorld(t)
	_, stop := w.follow(w.store)
	for _, m := range members {
		w.invite(m)
	}
	w.wantJobs(members...)
	stop()
	return w
}

// Facts before the first start have no reactions. Facts while no node runs have them later.
func TestReactionsBeginAtTheHeadOfTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.invite("before")
	_, stop := w.follow(w.store)
	w.invite("first")
	w.wantJobs("first")
	stop()
	w.invite("second")
	w.follow(w.store)
	w.wantJobs("first", "second")
}

// One of several nodes follows the log, and another continues at its end.
func TestAnotherNodeTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stop := w.follow(w.store)
	w.invite("1")
	w.wantJobs("1")
	w.follow(w.store)
	w.invite("2")
	w.wantJobs("1", "2")
	stop()
	w.invite("3")
	w.wantJobs("1", "2", "3")
	// A node that loses its connection and lock recovers.
	if _, err := w.pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_locks
		where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database()) and pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	w.invite("4")
	w.wantJobs("1", "2", "3", "4")
}

// engine is a store with a different name.
type engine struct{ events.Store }

func (engine) Engine() string { return "another" }

func (e engine) Log(ctx context.Context) (events.Log, error) {
	log, err := e.Store.Log(ctx)
	log.Engine = e.Engine()
	return log, err
}

func TestAnotherEngineBeginsAtItsHead(t *testing.T) {
	t.Parallel()
	w := followed(t, "1")
	w.invite("missed")
	r, _ := w.follow(engine{w.store})
	w.invite("2")
	w.wantJobs("1", "2")
	if !r.AnotherLog() {
		t.Error("nothing tells that the log is another one")
	}
}

// Before facts move to another engine, their missing jobs are created.
func TestJobsAreMadeFromTheLastFactsOfALog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.invite("before")
	catchUp := func(store events.Store) {
		t.Helper()
		if err := w.reactions(store).CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	catchUp(w.store) // no server has run yet
	_, stop := w.follow(w.store)
	w.invite("1")
	w.wantJobs("1")
	stop()
	w.invite("2")
	w.invite("3")
	catchUp(engine{w.store}) // no server has created jobs from that log
	w.wantJobs("1")
	catchUp(w.store)
	w.wantJobs("1", "2", "3")
	w.follow(engine{w.store})
	w.invite("4")
	w.wantJobs("1", "2", "3", "4")
}

// The log of another installation has other facts at the same positions.
func TestAnotherLogOfTheSameEngineBeginsAtItsHead(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]int{"shorter": 1, "longer": 5, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, other := newWorld(t), newWorld(t)
			r, stop := w.follow(w.store)
			w.invite("1")
			w.invite("2")
			w.wantJobs("1", "2")
			stop()
			if r.AnotherLog() {
				t.Error("an empty log is taken for another")
			}
			for range held {
				other.invite("of the other log")
			}
			r, stop = w.follow(other.store)
			other.invite("3")
			w.wantJobs("1", "2", "3")
			stop()
			if !r.AnotherLog() {
				t.Error("nothing tells that the log is another one")
			}
			other.invite("4")
			r, _ = w.follow(other.store)
			w.wantJobs("1", "2", "3", "4")
			if r.AnotherLog() {
				t.Error("the log is taken for another one once more")
			}
		})
	}
}

// A restored log ends before the checkpoint, or has grown past it since.
func TestReactionsBeginAtTheHeadOfARestoredLog(t *testing.T) {
	t.Parallel()
	for name, grown := range map[string]int{"shorter": 0, "as long": 1, "longer": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := followed(t, "1", "2")
			for _, sql := range []string{
				`alter table events.event disable trigger all`, `delete from events.event where position > 1`, `update events.head set position = 1`,
			} {
				if _, err := w.pool.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			for range grown {
				w.invite("of the restored log")
			}
			r, stop := w.follow(w.store)
			w.invite("3")
			w.wantJobs("1", "2", "3")
			if !r.AnotherLog() {
				t.Error("nothing tells that the log is another one")
			}
			stop()
			w.invite("4")
			r, _ = w.follow(w.store)
			w.wantJobs("1", "2", "3", "4")
			if r.AnotherLog() {
				t.Error("the log is taken for another one once more")
			}
		})
	}
}

// hooked is a store that calls a function before it returns its head.
type hooked struct {
	events.Store
	beforeHead func()
}

func (h hooked) Head(ctx context.Context) (events.Position, error) {
	h.beforeHead()
	return h.Store.Head(ctx)
}

// If two nodes find another log, only the one that replaces the checkpoint reports it.
func TestOneNodeTellsOfAnotherLog(t *testing.T) {
	t.Parallel()
	w, other := followed(t, "1"), newWorld(t)
	other.invite("of the other log")
	log := slog.New(slog.DiscardHandler)
	quick := reactions.NewCheckpoint(w.pool, other.store, log)
	late := reactions.NewCheckpoint(w.pool, hooked{other.store, func() {
		if err := quick.Begin(t.Context()); err != nil {
			t.Error(err)
		}
	}}, log)
	if err := late.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !quick.AnotherLog() || late.AnotherLog() {
		t.Errorf("the quick node tells of another log: %v; the late one: %v", quick.AnotherLog(), late.AnotherLog())
	}
}

// A fact that cannot be handled does not block others.
func TestAFactThatCannotBeHandledIsPassedOver(t *testing.T) {
	t.Parallel()
	w := followed(t, "1")
	w.invite("2")
	w.invite("\x00") // Postgres takes no such text in a job
	w.invite("3")
	broken := events.TenantStream(uuid.NewString())
	if _, err := w.store.Append(
		t.Context(), broken, 0,
		[]events.Event{{ID: uuid.New(), Metadata: events.Metadata{Time: time.Now()}, Fact: events.MemberInvited{ID: "4"}}},
	); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(), `alter table events.event disable trigger all`); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(
		t.Context(), `update events.event set data = '{"id":4}' where stream = $1`, broken,
	); err != nil {
		t.Fatal(err)
	}
	r, _ := w.follow(w.store)
	w.invite("5")
	w.wantJobs("1", "2", "3", "5")
	if n := r.Skipped(); n != 2 {
		t.Errorf("%d facts are counted as passed over", n)
	}
}

// Each fact creates one job, wherever nodes stop and start.
func TestEachFactMakesOneJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, stop := w.follow(w.store)
	var want []string
	for i := range 60 {
		if i%10 == 9 {
			stop()
			_, stop = w.follow(w.store)
		}
		want = append(want, fmt.Sprint(i))
		w.invite(want[i])
	}
	w.wantJobs(want...)
}

// A node that takes over starts at the checkpoint. At its start it has read the log's first event, and reads nothing
// more before the checkpoint.
func TestATakeoverDoesNotReadTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := esdbtest.New(t)
	open := func() events.Store {
		store, err := eventstore.Open(t.Context(), server.URL(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		return store
	}
	w.store = open()
	for i := range 300 {
		w.invite(fmt.Sprint("before ", i))
	}
	_, stop := w.follow(w.store)
	w.follow(open())
	w.invite("1")
	w.wantJobs("1")
	before := server.Sent()
	stop()
	w.invite("2")
	w.wantJobs("1", "2")
	if sent := server.Sent() - before; sent > 20 {
		t.Errorf("%d events of the log were read", sent)
	}
}
