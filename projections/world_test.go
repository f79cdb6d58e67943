package projections_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a database with a log, and read models while something updates them.
type world struct {
	t        *testing.T
	url      string
	store    *postgres.Store
	pool     *pgxpool.Pool         // as queries have it
	progress *projections.Progress // of what carryOn runs
	log      *slog.Logger
	logged   logbook
}

// logbook collects log lines.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logbook) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, url: pgtest.Migrated(t), progress: projections.NewProgress(models.All(), 0)}
	w.log = slog.New(slog.NewTextHandler(&w.logged, nil))
	if os.Getenv("FLAGLEDGER_TEST_LOG") != "" {
		w.log = slog.New(slog.NewTextHandler(io.MultiWriter(&w.logged, t.Output()), nil))
	}
	var err error
	if w.store, err = postgres.Open(t.Context(), w.url, w.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.store.Close)
	config, err := pgxpool.ParseConfig(w.url)
	if err != nil {
		t.Fatal(err)
	}
	// a lock that is never released fails the test instead of hanging it
	config.ConnConfig.RuntimeParams["statement_timeout"] = "20s"
	if w.pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pool.Close)
	w.readAsSnapshot(w.store, w.progress)
	return w
}

// pause waits for a few milliseconds, and less when ctx ends.
func pause(ctx context.Context) {
	select {
	case <-time.After(4 * time.Millisecond):
	case <-ctx.Done():
	}
}

// background runs a function until stop is called or the test ends, and waits until it has returned.
func (w *world) background(run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { run(ctx) })
	stop = func() {
		cancel()
		done.Wait()
	}
	w.t.Cleanup(stop)
	return stop
}

// readAsSnapshot reads the log for a Progress, in place of a snapshot.
func (w *world) readAsSnapshot(store events.Store, p *projections.Progress) (stop func()) {
	return w.background(func(ctx context.Context) {
		for page, err := range store.Subscribe(ctx, events.Position{}) {
			if err != nil {
				return
			}
			p.SnapshotReached(page)
		}
	})
}

// carryOn updates all read models, as a server does.
func (w *world) carryOn() (stop func()) {
	return w.background(func(ctx context.Context) {
		if err := projections.Run(ctx, w.url, w.store, models.All(), w.progress, w.log); err != nil {
			w.t.Error(err)
		}
	})
}

// carryOnOne updates one read model, possibly one outside the service. committed may be nil.
func (w *world) carryOnOne(p projections.Projection, committed func(events.Position)) (stop func()) {
	if committed == nil {
		committed = func(events.Position) {}
	}
	return w.background(func(ctx context.Context) {
		err := projections.CarryOn(ctx, p, w.url, w.store, w.log, committed)
		if err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) rebuild(list ...projections.Projection) {
	w.t.Helper()
	if err := projections.Rebuild(w.t.Context(), w.url, w.store, list, projections.RebuildOptions{}, w.log); err != nil {
		w.t.Fatal(err)
	}
}

// repair rebuilds a read model whose rows differ from the log's.
func (w *world) repair(p projections.Projection) {
	w.t.Helper()
	if err := projections.Rebuild(
		w.t.Context(), w.url, w.store, []projections.Projection{p}, projections.RebuildOptions{Force: true}, w.log,
	); err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits up to five minutes for a condition.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.After(5 * time.Minute)
	// the check costs more than the change
	for pause := 5 * time.Millisecond; !holds(); pause = min(pause*3/2, 50*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-deadline:
			w.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// settle waits until all read models are current.
func (w *world) settle() {
	w.t.Helper()
	w.eventually("the read models hold all of the log", func() bool {
		for _, s := range w.statuses() {
			if !s.Built || s.Lag > 0 {
				return false
			}
		}
		return true
	})
}

func (w *world) statuses() map[string]projections.Status {
	w.t.Helper()
	list, err := projections.Statuses(w.t.Context(), w.pool, models.All(), w.store)
	for errors.Is(err, events.ErrUnavailable) { // a connection that was broken
		list, err = projections.Statuses(w.t.Context(), w.pool, models.All(), w.store)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	byName := map[string]projections.Status{}
	for _, s := range list {
		byName[s.Name] = s
	}
	return byName
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

// column returns the only column of some rows.
func column[T any](w *world, sql string, args ...any) []T {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), sql, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// dump returns all rows of all read models, by table.
func (w *world) dump() map[string][]string {
	w.t.Helper()
	tables := map[string][]string{}
	for _, table := range column[string](w, `select tablename from pg_tables where schemaname = 'read' and tablename <> 'checkpoints'`) {
		tables[table] = column[string](w, `select t::text from read.`+table+` t order by t::text collate "C"`)
	}
	return tables
}

// event wraps a fact for an append.
func event(fact events.Fact) events.Event {
	return events.Event{
		ID: uuid.Must(uuid.NewV7()),
		Metadata: events.Metadata{
			Time:  time.Now().UTC().Truncate(time.Millisecond),
			Actor: events.Actor{Kind: events.UserActor, ID: "u1"},
		},
		Fact: fact,
	}
}

// firstPage returns the first page of the log.
func (w *world) firstPage() events.Page {
	w.t.Helper()
	for page, err := range w.store.Subscribe(w.t.Context(), events.Position{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		return page
	}
	return events.Page{}
}

// append adds facts to a stream at a revision.
func (w *world) append(stream string, at events.Revision, facts ...events.Fact) events.Position {
	w.t.Helper()
	var list []events.Event
	for _, fact := range facts {
		list = append(list, event(fact))
	}
	appended, err := w.store.Append(w.t.Context(), stream, at, list)
	// a broken connection: the outcome is unknown, and the append is idempotent
	for errors.Is(err, events.ErrUnavailable) {
		appended, err = w.store.Append(w.t.Context(), stream, at, list)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return appended.Position
}

// appendRaw adds an event that the codec would refuse.
func (w *world) appendRaw(stream string, at events.Revision, name, data, metadata string) {
	w.t.Helper()
	w.exec(`select events.append($1, $2, '{1}', $3, $4, '{1}', $5, $6)`, []string{stream}, []int64{int64(at)},
		[]uuid.UUID{uuid.New()}, []string{name}, [][]byte{[]byte(data)}, [][]byte{[]byte(metadata)})
}

// newFlag returns the fact that creates a flag of tenant t.
func newFlag(key string) events.FlagCreated {
	return events.FlagCreated{
		TenantID:     "t",
		Key:          key,
		ID:           "id of " + key,
		Name:         key,
		Type:         events.BooleanFlag,
		DefaultValue: []byte(`false`),
		Salt:         "s",
	}
}
