package projections_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/queries"
)

// same ends the test unless the read models hold the same rows as before.
func (w *world) same(after string, before map[string][]string) {
	w.t.Helper()
	now := w.dump()
	if maps.EqualFunc(before, now, slices.Equal) { // reported earlier than the difference
		return
	}
	if diff := cmp.Diff(before, now); diff != "" {
		w.t.Fatalf("after %s the rows differ (-before +after):\n%s", after, diff)
	}
}

// sameFromScratch ends the test unless read models without a projector equal the rows of the log.
func (w *world) sameFromScratch() {
	w.t.Helper()
	before := w.dump()
	w.exec(`drop schema read cascade`)
	w.rebuild(models.All()...)
	w.same("dropping all and a rebuild", before)
}

// A rebuild reports that it waits for another one of the same read model.
func TestARebuildTellsThatItWaitsForAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, err := models.ByName([]string{"projects"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Release()
	lock := func(function string) {
		t.Helper()
		if _, err := other.Exec(
			t.Context(), `select `+function+`(hashtext('flagledger projection'), hashtext($1))`,
			projections.BuildingSchema+".projects",
		); err != nil {
			t.Fatal(err)
		}
	}
	lock("pg_advisory_lock")
	ended := make(chan error, 1)
	w.background(func(ctx context.Context) {
		ended <- projections.Rebuild(ctx, w.url, w.store, p, projections.RebuildOptions{}, w.log)
	})
	w.eventually("it says that it waits", func() bool { return w.logged.has("waiting for it") })
	lock("pg_advisory_unlock")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestARebuildGivesTheSameRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.carryOn()
	w.fill(3, 500) // the read models follow page by page meanwhile
	w.settle()
	before := w.dump()
	for _, p := range models.All() {
		for _, table := range p.Tables {
			if len(before[table]) == 0 {
				t.Errorf("the workload leaves no rows in %s", table)
			}
		}
	}
	for name, s := range w.statuses() {
		if len(s.Parked) > 0 {
			t.Errorf("%s has parked %v", name, s.Parked)
		}
	}
	w.rebuild(models.All()...)
	w.same("a rebuild beside a projector", before)

	stop()
	w.sameFromScratch()

	w.exec(`drop schema read cascade`)
	w.carryOn()
	w.settle()
	w.same("dropping all and a start", before)

	w.exec(`drop schema read cascade`) // under a projector, which finds out with the next event
	w.append("flag-t.new", 0, newFlag("new"))
	w.settle()
	w.sameFromScratch()
}

func TestReadersMissNothingDuringRebuildsUnderWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.carryOn()
	w.settle()

	var (
		written      [2]atomic.Int64 // flags that each writer knows to be readable
		reads, async atomic.Int64
		stops        []func()
	)
	for writer := range written {
		stops = append(stops, w.background(func(ctx context.Context) {
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("w%d-%06d", writer, i)
				appended, err := w.store.Append(context.Background(), events.FlagStream("t", key), 0,
					[]events.Event{event(newFlag(key))})
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				if w.progress.Wait(context.Background(), appended.Position, ofFlags) {
					written[writer].Store(int64(i + 1))
				} else {
					async.Add(1)
				}
				pause(ctx)
			}
		}))
	}
	read := queries.New(w.pool, w.store, nil, nil)
	for reader := range 3 {
		stops = append(stops, w.background(func(ctx context.Context) {
			for ctx.Err() == nil {
				writer := reader % len(written)
				want := written[writer].Load()
				var rows []queries.Flag
				list, err := read.Flags(
					context.Background(),
					queries.FlagList{
						TenantID:      "t",
						EnvironmentID: "e",
						Filter:        queries.FlagFilter{Search: fmt.Sprintf("w%d-", writer)},
					},
				)
				if err == nil {
					rows, err = list.All(context.Background())
				}
				if err != nil || int64(len(rows)) < want {
					t.Errorf("%d flags were read, %v; %d had been acknowledged", len(rows), err, want)
					return
				}
				reads.Add(1)
				pause(ctx)
			}
		}))
	}
	for range 3 {
		before := written[0].Load()
		w.eventually("some more is written", func() bool { return written[0].Load() > before+10 || t.Failed() })
		w.rebuild(models.All()...)
	}
	for _, stop := range stops {
		stop()
	}
	t.Logf("%d and %d flags written, %d acknowledged before they could be read, %d lists read", written[0].Load(),
		written[1].Load(), async.Load(), reads.Load())
	w.settle()
	stop()
	if w.logged.has("parked") {
		t.Error("the log tells of a stream that was parked")
	}
	if left := w.leftTables(); len(left) > 0 {
		t.Errorf("rebuilds left tables behind: %v", left)
	}
	w.sameFromScratch()
}

// steppedStore delivers an empty page at the end of the log, then the given pages, then an error.
type steppedStore struct {
	events.Store
	pages chan events.Page
}

var errBroken = errors.New("the log cannot be read")

func (s steppedStore) Subscribe(ctx context.Context, after events.Position) iter.Seq2[events.Page, error] {
	return func(yield func(events.Page, error) bool) {
		for page := (events.Page{Next: after, Live: true}); yield(page, nil); {
			var ok bool
			select {
			case page, ok = <-s.pages:
			case <-ctx.Done():
				return
			}
			if !ok {
				yield(page, errBroken)
				return
			}
		}
	}
}

// stoppedProjector is a tally projector with a log of two events, stopped by a rebuild of the next version. The rebuild
// lacks the first event, and reads the given pages.
type stoppedProjector struct {
	stop    func()
	reached *atomic.Uint64
	pages   chan<- events.Page
	rebuilt <-chan error
}

// stopProjector starts such a rebuild, which stops the projector briefly from time to time. It returns at the start of
// such a stop.
func (w *world) stopProjector() stoppedProjector {
	w.t.Helper()
	w.append("flag-t.a", 0, newFlag("a"))
	w.append("flag-t.b", 0, newFlag("b"))
	var reached atomic.Uint64
	stop := w.carryOnOne(tally(1, "event"), func(position events.Position) { reached.Store(position.Commit) })
	w.eventually("the projector has followed", func() bool { return reached.Load() == 2 })
	pages, rebuilt := make(chan events.Page, 2), make(chan error, 1)
	go func() {
		rebuilt <- projections.Rebuild(w.t.Context(), w.url, steppedStore{w.store, pages}, []projections.Projection{tally(2, "fact")}, projections.RebuildOptions{}, w.log)
	}()
	w.eventually("the rebuild has stopped the projector", func() bool {
		return len(column[string](w, `select projection from read.checkpoints for update skip locked`)) == 0
	})
	return stoppedProjector{stop, &reached, pages, rebuilt}
}

// follows appends an event and waits until the projector has applied it.
func (w *world) follows(p stoppedProjector) {
	w.t.Helper()
	w.append("flag-t.c", 0, newFlag("c"))
	w.eventually("the projector follows", func() bool { return p.reached.Load() == 3 })
}

// ended waits until the rebuild has ended and returns its error.
func (w *world) ended(p stoppedProjector) error {
	w.t.Helper()
	select {
	case err := <-p.rebuilt:
		return err
	case <-time.After(time.Minute):
		w.t.Fatal("the rebuild does not end")
		return nil
	}
}

// If a rebuild fails after it has stopped the projector, it must release it.
func TestARebuildThatFailsLeavesTheProjectorAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.stopProjector()
	close(p.pages)
	if err := w.ended(p); !errors.Is(err, errBroken) {
		t.Fatalf("the rebuild ended with %v", err)
	}
	w.follows(p)
}

// A rebuild that has stopped the projector must release it while it waits for missing events.
func TestARebuildThatWaitsForEventsLetsTheProjectorGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.stopProjector()
	first := w.firstPage().Events[:1]
	p.pages <- events.Page{Events: first, Next: first[0].Position} // not Live: more events follow
	w.follows(p)
	p.stop()

	page := w.firstPage()
	p.pages <- events.Page{Events: page.Events[1:], Next: page.Next, Live: true}
	if err := w.ended(p); err != nil {
		t.Fatal(err)
	}
	if got := column[string](w, `select fact from read.tally`); len(got) != 3 {
		t.Errorf("what is read has the rows %v", got)
	}
}

// awayStore fails the first time that its head is read, and then delivers a page.
type awayStore struct {
	steppedStore
	page  events.Page
	asked *atomic.Int32
}

func (s awayStore) Head(ctx context.Context) (events.Position, error) {
	if s.asked.Add(1) == 1 {
		s.pages <- s.page
		return events.Position{}, events.ErrUnavailable
	}
	return s.steppedStore.Head(ctx)
}

// A long rebuild must survive a short outage of the event store.
func TestARebuildOutlivesAnEventStoreThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append("flag-t.a", 0, newFlag("a"))
	w.append("flag-t.b", 0, newFlag("b"))
	w.carryOnOne(tally(1, "event"), nil)
	w.eventually("the projector has followed", func() bool {
		return tally(1, "event").HasReadModel(t.Context(), w.pool) == nil &&
			len(column[string](w, `select event from read.tally`)) == 2
	})
	page := w.firstPage()
	page.Live = true
	store := awayStore{steppedStore{w.store, make(chan events.Page, 1)}, page, &atomic.Int32{}}
	if err := projections.Rebuild(
		t.Context(), w.url, store, []projections.Projection{tally(2, "fact")}, projections.RebuildOptions{}, w.log,
	); err != nil {
		t.Fatal(err)
	}
	if got := column[string](w, `select fact from read.tally`); len(got) != 2 || store.asked.Load() == 0 {
		t.Errorf("what is read has the rows %v after the head was asked for %d times", got, store.asked.Load())
	}
}

// Failed stops are rare and short at first, and none is longer than two seconds.
func TestALiveProjectorIsStoppedForLongerOnceItWasInVain(t *testing.T) {
	for failedHolds, want := range map[int]time.Duration{0: 100 * time.Millisecond, 9: 100 * time.Millisecond, 10: 200 * time.Millisecond, 199: 2 * time.Second, 10_000: 2 * time.Second} {
		if got := projections.MaxHold(failedHolds); got != want {
			t.Errorf("after %d failed holds: %v, want %v", failedHolds, got, want)
		}
	}
}

// A projector that waits for a checkpoint locked by a rebuild may hold its tables, because preparing a statement locks
// them. The rebuild must then start again, not fail.
func TestARebuildGivesWayWhenItMeetsTheProjectorHeadOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := tally(1, "event")
	w.append("flag-t.a", 0, newFlag("a"))
	stop := w.carryOnOne(p, nil)
	w.eventually("the table stands", func() bool {
		err := p.HasReadModel(t.Context(), w.pool)
		return err == nil
	})
	stop()
	var reached atomic.Uint64
	// over a new connection without prepared statements
	w.carryOnOne(p, func(position events.Position) { reached.Store(position.Commit) })
	w.eventually("the projector is back", func() bool { return reached.Load() == 1 })

	b, err := projections.NewBuild(t.Context(), p, w.url, w.store, w.log)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if err := b.LockLive(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.append("flag-t.b", 0, newFlag("b"))
	// Postgres looks for a deadlock once, after a second of waiting. The projector has passed that point, so the rebuild
	// must yield.
	w.eventually("the projector has waited for its checkpoint for a while", func() bool {
		return len(column[int32](w, `select pid from pg_locks join pg_stat_activity using (pid)
			where datname = current_database() and not granted and waitstart < clock_timestamp() - interval '1200 ms'`)) > 0
	})
	if done, err := b.Finish(t.Context()); done || err != nil {
		t.Errorf("finish: %v, %v, want another attempt once the new table is as far as the live one now is", done, err)
	}
	w.eventually("the projector follows", func() bool { return reached.Load() == 2 })
}

// A vacuum of a table takes long, and holds a lock that prevents the switch of tables. No projector may stop meanwhile.
func TestARebuildStopsNobodyWhileATableIsVacuumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.standingTally()
	b, err := projections.NewBuild(t.Context(), p, w.url, w.store, w.log)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	for _, table := range []string{"read.tally", "read_next.tally"} {
		vacuum, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = vacuum.Rollback(context.Background()) }()
		if _, err := vacuum.Exec(t.Context(), `lock table `+table+` in share update exclusive mode`); err != nil {
			t.Fatal(err)
		}
		locked := make(chan error, 1)
		go func() { locked <- b.LockLive(t.Context()) }()
		w.eventually("the rebuild waits, and the projector does not", func() bool {
			return len(
				column[int32](w, `select pid from pg_locks where relation = '`+table+`'::regclass and not granted`),
			) == 1 &&
				len(column[string](w, `select projection from read.checkpoints for update skip locked`)) == 1
		})
		if err := vacuum.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-locked; err != nil {
			t.Fatal(err)
		}
		b.LetGo()
	}
}

// The old tables are dropped once readers use the new ones. If the rebuild is killed before, the next one drops them.
func TestARebuildDropsWhatWasReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.standingTally()
	w.exec(`create table read_old.tally ()`)
	w.rebuild(p)
	if left := w.leftTables(); len(left) > 0 {
		t.Errorf("a rebuild left tables behind: %v", left)
	}
}

// A rebuild that lost its lock to another without noticing must not switch to tables that the other has just begun to
// fill.
func TestARebuildSwitchesToItsOwnTablesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := tally(1, "event")
	w.append("flag-t.a", 0, newFlag("a"))
	stop := w.carryOnOne(p, nil)
	w.eventually("the event is applied", func() bool {
		return p.HasReadModel(t.Context(), w.pool) == nil && len(column[string](w, `select event from read.tally`)) == 1
	})
	stop()
	var builds [2]*projections.Build
	for i := range builds {
		b, err := projections.NewBuild(t.Context(), p, w.url, w.store, w.log)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Release()
		builds[i] = b
	}
	if err := builds[0].LockLive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, err := builds[0].Finish(t.Context()); done || !errors.Is(err, projections.ErrMoved) {
		t.Errorf("finish: %v, %v, want ErrMoved", done, err)
	}
	if got := column[string](w, `select event from read.tally`); len(got) != 1 {
		t.Errorf("what is read has the rows %v", got)
	}
}

// tally is a read model with a row for each event and the number of its applications.
func tally(version int, column string) projections.Projection {
	table := &projections.Table{Name: "tally", Columns: []string{column}}
	return projections.Projection{
		Name: "tally", Version: version, Tables: []string{"tally"}, FactPrefixes: []string{""},
		Schema: `create table tally (n bigint generated always as identity, ` + column + ` text not null)`,
		Apply: func(b *projections.Batch, e events.Recorded) error {
			b.Insert(table, fmt.Sprintf("%s@%d", e.Stream, e.Revision))
			return nil
		},
	}
}

// standingTally is a current tally of a log with one event.
func (w *world) standingTally() projections.Projection {
	w.t.Helper()
	p := tally(1, "event")
	w.append("flag-t.a", 0, newFlag("a"))
	w.carryOnOne(p, nil)
	w.eventually("the table stands", func() bool { return p.HasReadModel(w.t.Context(), w.pool) == nil })
	return p
}

func TestANewVersionIsBuiltBesideTheOldOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for i := range 30 {
		w.append(fmt.Sprintf("flag-t.%d", i), 0, newFlag("f"))
		want = append(want, fmt.Sprintf("flag-t.%d@1", i))
	}
	rowsOf := func(p projections.Projection, named string) ([]string, error) {
		if err := p.HasReadModel(t.Context(), w.pool); err != nil {
			return nil, err
		}
		return column[string](w, `select `+named+` from read.tally order by n`), nil
	}
	old, next := tally(1, "event"), tally(2, "fact")
	stop := w.carryOnOne(old, nil)
	w.eventually("the first version is built",
		func() bool { rows, err := rowsOf(old, "event"); return err == nil && len(rows) == len(want) })
	stop()

	// The new version blocks at its first event until released. Meanwhile the old one is read.
	release := make(chan struct{})
	held := next
	held.Apply = func(b *projections.Batch, e events.Recorded) error {
		<-release
		return next.Apply(b, e)
	}
	w.carryOnOne(held, nil)
	w.eventually("the new version's table stands", func() bool {
		return len(
			column[string](w, `select tablename from pg_tables where schemaname = 'read_next' and tablename = 'tally'`),
		) == 1
	})
	if rows, err := rowsOf(old, "event"); err != nil || !slices.Equal(rows, want) {
		t.Errorf("while the new version is built, the old one has %v, %v", rows, err)
	}
	if _, err := rowsOf(next, "fact"); !errors.Is(err, projections.ErrNoReadModel) {
		t.Errorf("while the new version is built, it is said to stand: %v", err)
	}
	close(release)
	w.eventually("the new version is read", func() bool { _, err := rowsOf(next, "fact"); return err == nil })
	w.append("flag-t.30", 0, newFlag("f"))
	want = append(want, "flag-t.30@1")
	w.eventually("the new version follows",
		func() bool { rows, err := rowsOf(next, "fact"); return err == nil && slices.Equal(rows, want) })
}

// Indexes are built on existing rows. A row that does not fit must not end the rebuild: its stream is parked, as for a
// later row.
func TestARowThatFitsIntoNoIndexParksItsStreamInARebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, key := range []string{"a", "large", "b"} {
		w.append("flag-t."+key, 0, newFlag(key))
	}
	p := tally(1, "event")
	p.Indexes = `create index if not exists tally_event on tally (event)`
	large, table := randomText(20_000), &projections.Table{Name: "tally", Columns: []string{"event"}}
	p.Apply = func(b *projections.Batch, e events.Recorded) error {
		text := e.Stream
		if e.Stream == "flag-t.large" {
			text = large
		}
		b.Insert(table, text)
		return nil
	}
	w.rebuild(p)
	if got := column[string](w, `select event from read.tally order by event`); !slices.Equal(got, []string{"flag-t.a", "flag-t.b"}) {
		t.Errorf("what is read has the rows %.60v", got)
	}
	parked, err := p.Parked(t.Context(), w.pool)
	if err != nil || len(parked) != 1 || parked[0].Stream != "flag-t.large" {
		t.Errorf("parked are %v, %v", parked, err)
	}
	if got := column[string](
		w, `select indexname::text from pg_indexes where schemaname = 'read' and tablename = 'tally'`,
	); !slices.Equal(got, []string{"tally_event"}) {
		t.Errorf("what is read has the indexes %v", got)
	}
}

// A batch runs statements queued as last once a key, after the others, and copies many rows.
func TestABatchRunsWhatComesLastOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(
		`create schema if not exists read; create table read.lines (n bigint generated always as identity, line text not null)`,
	)
	table := &projections.Table{Name: "lines", Columns: []string{"line"}}
	for _, rows := range []int{3, 100} {
		w.exec(`truncate read.lines restart identity`)
		var b projections.Batch
		var want []string
		line := projections.NewStatement("line text", `insert into lines (line) select line from given`)
		b.QueueLast("x", line, pgx.NamedArgs{"line": "x, first"})
		b.QueueLast("y", line, pgx.NamedArgs{"line": "y"})
		b.QueueLast("x", line, pgx.NamedArgs{"line": "x, last"})
		b.Queue(line, pgx.NamedArgs{"line": "a"})
		want = append(want, "a", "y", "x, last")
		for i := range rows {
			b.Insert(table, fmt.Sprint("row ", i))
			want = append(want, fmt.Sprint("row ", i))
		}
		err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `set local search_path = read`); err != nil {
				return err
			}
			return b.Run(t.Context(), tx)
		})
		if got := column[string](w, `select line from read.lines order by n`); err != nil || !slices.Equal(got, want) {
			t.Errorf("the table has %q, want %q: %v", got, want, err)
		}
	}
}

// Nodes of two releases run together: the older one updates its tables until the newer one's are complete, and then
// stops.
func TestAnOlderReleaseServesItsTablesUntilTheNewOnesAreWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	add := func() {
		stream := fmt.Sprintf("flag-t.%d", len(want))
		w.append(stream, 0, newFlag("f"))
		want = append(want, stream+"@1")
	}
	shows := func(p projections.Projection, named string) func() bool {
		return func() bool {
			return p.HasReadModel(t.Context(), w.pool) == nil &&
				slices.Equal(column[string](w, `select `+named+` from read.tally order by n`), want)
		}
	}
	for range 30 {
		add()
	}
	old, next := tally(1, "event"), tally(2, "fact")
	w.carryOnOne(old, nil)
	w.eventually("the older version is built", shows(old, "event"))

	release := make(chan struct{})
	held := next
	held.Apply = func(b *projections.Batch, e events.Recorded) error {
		<-release
		return next.Apply(b, e)
	}
	for range 2 { // two nodes of the newer release, one of them builds
		w.carryOnOne(held, nil)
	}
	w.eventually("the newer version's table stands", func() bool {
		return len(
			column[string](w, `select tablename from pg_tables where schemaname = 'read_next' and tablename = 'tally'`),
		) == 1
	})
	add()
	w.eventually("the older version still follows", shows(old, "event"))
	close(release)
	w.eventually("the newer version is read", func() bool { return next.HasReadModel(t.Context(), w.pool) == nil })
	for range 10 {
		add()
		w.eventually("the newer version follows", shows(next, "fact"))
	}
	w.eventually("the node of the older release says so",
		func() bool { return w.logged.has("a newer release carries a read model on") })
	if w.logged.has("projection stopped") {
		t.Error("a projection failed")
	}
	w.rebuild(old) // that goes back, and the nodes of the newer release find it with the next event
	add()
	w.eventually("the newer version is built again", shows(next, "fact"))
}

// Without any rebuild there is no schema for it.
func TestNothingIsBuildingBeforeTheFirstRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`drop schema if exists ` + projections.BuildingSchema + ` cascade`)
	if building, err := projections.Building(t.Context(), w.pool); err != nil || len(building) > 0 {
		t.Fatalf("%v are building, err %v", building, err)
	}
}
