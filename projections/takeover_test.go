package projections_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/models"
)

// breakConnections ends all connections to the database, even during a statement.
func (w *world) breakConnections() {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer projections.Disconnect(conn)
	if _, err := conn.Exec(
		w.t.Context(),
		`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
	); err != nil {
		w.t.Error(err)
	}
	w.pool.Reset()
}

// holder returns the connection that updates a projection, or 0.
func (w *world) holder(p projections.Projection) int32 {
	w.t.Helper()
	pids := column[int32](
		w,
		`select pid from pg_locks join pg_stat_activity using (pid) where datname = current_database() and granted
		and locktype = 'advisory' and classid = hashtext('flagledger projection')::oid and objid = hashtext($1)::oid`,
		projections.LiveSchema+"."+p.Name,
	)
	if len(pids) > 1 {
		w.t.Errorf("connections %v carry on one projection", pids)
	}
	return append(pids, 0)[0]
}

func TestAnotherProjectorTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := tally(1, "event")
	var reached [2]atomic.Uint64
	start := func(i int) (stop func()) {
		return w.carryOnOne(p, func(position events.Position) { reached[i].Store(position.Commit) })
	}
	var want []string
	// write appends an event and checks that a projector applies it.
	write := func(by ...int) {
		t.Helper()
		stream := fmt.Sprintf("flag-t.%d", len(want))
		want = append(want, stream+"@1")
		position := w.append(stream, 0, newFlag("f"))
		applied := func(i int) bool { return reached[i].Load() == position.Commit }
		w.eventually("the event is applied", func() bool { return slices.ContainsFunc(by, applied) })
		if applied(0) && applied(1) || len(by) == 1 && applied(1-by[0]) {
			t.Error("another projector applied the event")
		}
	}
	stopFirst := start(0)
	write(0)
	stopSecond := start(1)
	for range 20 {
		write(0)
	}

	for range 3 {
		holder := w.holder(p)
		w.exec(`select pg_terminate_backend($1)`, holder)
		w.eventually("the lock is taken again", func() bool { pid := w.holder(p); return pid != 0 && pid != holder })
		for range 10 {
			write(0, 1)
		}
	}

	began := time.Now()
	stopFirst()
	write(1)
	t.Logf("taken over and caught up %v after the other was told to end", time.Since(began))
	stopFirst = start(0)
	began = time.Now()
	stopSecond()
	write(0)
	t.Logf("and %v the other way round", time.Since(began))
	stopFirst()
	if got := column[string](w, `select event from read.tally order by n`); !slices.Equal(got, want) {
		t.Errorf("applied were %v, want each event once and in order: %v", got, want)
	}
}

// Locks alone do not prevent two projectors: one whose connection broke unnoticed continues until it finds out. The
// checkpoint prevents them.
func TestAProjectorWithoutTheLockAppliesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := tally(1, "event")
	var reached atomic.Uint64
	w.carryOnOne(p, func(position events.Position) { reached.Store(position.Commit) })
	w.append("flag-t.a", 0, newFlag("a"))
	w.eventually("the event is applied", func() bool { return reached.Load() == 1 })

	// The projector reaches its checkpoint, and finds that another one is committing the same event.
	other, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(t.Context()) }()
	if _, err := other.Exec(
		t.Context(), `select from read.checkpoints where projection = 'tally' for update`,
	); err != nil {
		t.Fatal(err)
	}
	w.append("flag-t.b", 0, newFlag("b"))
	w.eventually("the projector waits for its checkpoint", func() bool {
		return len(
			column[int32](
				w,
				`select pid from pg_stat_activity where datname = current_database() and application_name = 'flagledger projector' and wait_event_type = 'Lock'`,
			),
		) > 0
	})
	if _, err := other.Exec(t.Context(), `insert into read.tally (event) values ('flag-t.b@1')`); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(
		t.Context(), `update read.checkpoints set commit = 2, prepare = 2 where projection = 'tally'`,
	); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.append("flag-t.c", 0, newFlag("c"))
	w.eventually("the projector goes on", func() bool { return reached.Load() == 3 })
	if got, want := column[string](w, `select event from read.tally order by n`), []string{
		"flag-t.a@1",
		"flag-t.b@1",
		"flag-t.c@1",
	}; !slices.Equal(got, want) {
		t.Errorf("applied were %v, want %v", got, want)
	}
}

// forgetfulStore loses every fifth response to an append, like a broken connection.
type forgetfulStore struct {
	events.Store
	appends atomic.Int64
}

func (s *forgetfulStore) Append(
	ctx context.Context, stream string, at events.Revision, batch []events.Event,
) (events.Appended, error) {
	appended, err := s.Store.Append(ctx, stream, at, batch)
	if s.appends.Add(1)%5 == 0 {
		return events.Appended{}, events.ErrUnavailable
	}
	return appended, err
}

func TestBrokenConnectionsLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	const breaks = 12
	w := newWorld(t)
	w.carryOn()
	w.background(func(ctx context.Context) { w.progress.Listen(ctx, w.url, w.store, w.log) })
	// A second node takes over from time to time.
	w.background(func(ctx context.Context) {
		_ = projections.Run(ctx, w.url, w.store, models.All(), projections.NewProgress(models.All(), 0), w.log)
	})
	w.settle()

	node := writer.NewWriter(&forgetfulStore{Store: w.store}, w.progress.Wait, writer.NoQuotas{}, time.Now)
	var written [4][]string
	var acknowledged, unknown, async atomic.Int64
	var stops []func()
	for i := range written {
		stops = append(stops, w.background(func(ctx context.Context) {
			for n := 0; ctx.Err() == nil; n++ {
				key := fmt.Sprintf("w%d-%d", i, n)
				flag, done, err := writer.Do(context.Background(), node,
					writer.By{Actor: events.Actor{Kind: events.UserActor, ID: "u"}},
					commands.CreateFlag{TenantID: "t", Key: key, ID: commands.NewID(), Type: events.BooleanFlag, Salt: "s"})
				switch {
				case commands.KindOf(err) == commands.Unavailable:
					unknown.Add(1)
				case err != nil:
					t.Errorf("creating %s: %v", key, err)
				default:
					written[i] = append(written[i], flag.ID)
					acknowledged.Add(1)
					if done.Stale {
						async.Add(1)
					}
				}
			}
		}))
	}
	for range breaks {
		before := acknowledged.Load()
		w.eventually("some more is written", func() bool { return acknowledged.Load() >= before+10 })
		w.breakConnections()
	}
	for _, stop := range stops {
		stop()
	}
	t.Logf("%d writes acknowledged, %d of them before they could be read, %d refused, over %d breaks", acknowledged.Load(),
		async.Load(), unknown.Load(), breaks)
	w.settle()
	rows := column[string](w, `select id from read.flags`)
	for _, ids := range written {
		for _, id := range ids {
			if !slices.Contains(rows, id) {
				t.Errorf("the flag %s was acknowledged and is not there", id)
			}
		}
	}
	if duplicated := column[string](w, `select stream from events.event group by stream having count(*) > 1`); len(duplicated) > 0 {
		t.Errorf("flags were created more than once: %v", duplicated)
	}
	for name, s := range w.statuses() {
		if len(s.Parked) > 0 {
			t.Errorf("%s has parked %v", name, s.Parked)
		}
	}
	before := w.dump()
	w.rebuild(models.All()...)
	w.same("a rebuild", before)
}

// A node that loses power or its network closes no connection. The server must notice, or it would hold the locks for
// hours.
func TestTheServerNoticesANodeThatVanished(t *testing.T) {
	t.Parallel()
	conn, err := projections.ConnectSession(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer projections.Disconnect(conn)
	for name, most := range map[string]int{
		"tcp_keepalives_idle": 5, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3, "tcp_user_timeout": 20_000,
	} {
		var value int
		if err := conn.QueryRow(t.Context(), `select setting::int from pg_settings where name = $1`, name).
			Scan(&value); err != nil {
			t.Fatal(err)
		}
		if value < 1 || value > most {
			t.Errorf("%s is %d, want 1 to %d", name, value, most)
		}
	}
}
