package health

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/jobs"
	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/reactions"
	"flagledger/projections/snapshot"
)

func always() bool { return true }

// A node whose database has just returned may know only the public keys yet.
func TestHealthTellsThatNoTokensAreIssued(t *testing.T) {
	m := New(
		Options{
			Snapshot: snapshot.New(snapshot.Options{}),
			Progress: projections.NewProgress(nil, 0),
			Signs:    func() bool { return false },
			Disk:     &Disk{},
		},
	)
	if got := strings.Join(
		m.Problems(), "; ",
	); got != "the signing keys have not been read yet: sign-in fails, and no tokens are issued" {
		t.Errorf("it tells: %s", got)
	}
}

// Any caller may read the health.
func TestHealthTellsNeitherWhoseStreamsAreParkedNorHowMuchTenantsChange(t *testing.T) {
	m := New(
		Options{Snapshot: snapshot.New(snapshot.Options{}), Progress: projections.NewProgress(nil, 0), Signs: always, Disk: &Disk{}},
	)
	m.current.Store(&observation{statuses: []projections.Status{
		{Name: "flags", Built: true, Lag: 1234, Behind: modelLate + 1},
		{Name: "audit", Built: true, Parked: []projections.Parked{{Stream: "flag-t.secret-plan"}, {Stream: "user-u"}}},
	}})
	if got := strings.Join(
		m.Problems(), "; ",
	); got != "the read model flags is more than 30s behind; the read model audit has parked streams" {
		t.Errorf("it tells: %s", got)
	}
}

func TestHealthTellsOfJobsThatFail(t *testing.T) {
	o := jobsObservation{
		counts: []jobs.Count{
			{Kind: "mail", State: "discarded", N: 2, Failing: 2},
			{Kind: "mail", State: "retryable", N: 5, Failing: 1},
			{Kind: "upkeep", State: "available", N: 9},
		},
		lag:    7,
		behind: reactionsLate + 1,
	}
	if got := strings.Join(
		o.problems(), "; ",
	); got != "jobs failed five times or were given up; no jobs have been made for more than 10s from what has happened" {
		t.Errorf("it tells: %s", got)
	}
	o = jobsObservation{counts: []jobs.Count{{Kind: "mail", State: "retryable", N: 5}}, lag: 7, behind: reactionsLate}
	if got := o.problems(); len(got) != 0 {
		t.Errorf("it tells of what is in order: %v", got)
	}
}

// withoutClock makes the statement that reads the database's clock time out.
type withoutClock struct{}

func (withoutClock) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(data.SQL, "clock_timestamp") {
		return ctx
	}
	ctx, cancel := context.WithDeadline(ctx, time.Now())
	context.AfterFunc(ctx, cancel)
	return ctx
}

func (withoutClock) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A pool whose connections are all in use leaves no time to compare clocks.
func TestAClockThatIsNotComparedIsNoOutage(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(pgtest.Migrated(t))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = withoutClock{}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	log := slog.New(slog.DiscardHandler)
	store, err := postgres.Open(t.Context(), config.ConnString(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	queue, err := jobs.Open(pool)
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{
		Pool:       pool,
		Store:      store,
		InDatabase: true,
		Snapshot:   snapshot.New(snapshot.Options{}),
		Progress:   projections.NewProgress(nil, 0),
		Signs:      always,
		Jobs:       queue,
		Reactions:  reactions.New(reactions.NewCheckpoint(pool, store, log), queue, nil),
		Disk:       &Disk{},
	})
	m.current.Store(&observation{skew: time.Hour})
	m.observe(t.Context())
	got := strings.Join(m.Problems(), "; ")
	if strings.Contains(got, "cannot be reached") || !strings.Contains(got, "the clock of this node is 1h0m0s ahead") {
		t.Errorf("it tells: %s", got)
	}
}

// downStore is an unreachable store.
type downStore struct{ events.Store }

func (downStore) Head(context.Context) (events.Position, error) {
	return events.Position{}, events.ErrUnavailable
}

// If the database hangs, each check of it takes until its timeout.
func TestHealthTellsOfAStoreThatIsDownBeforeItLooksAtTheRest(t *testing.T) {
	t.Parallel()
	for inDatabase, want := range map[bool]string{true: "the database cannot be reached", false: "the event store cannot be reached"} {
		config, err := pgxpool.ParseConfig("postgres://127.0.0.1:1/x")
		if err != nil {
			t.Fatal(err)
		}
		var m *Monitor
		var first sync.Once
		var told string
		config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
			first.Do(func() { told = strings.Join(m.Problems(), "; ") })
			return errors.New("the database hangs")
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		queue, err := jobs.Open(pool)
		if err != nil {
			t.Fatal(err)
		}
		checkpoint := reactions.NewCheckpoint(pool, downStore{}, slog.New(slog.DiscardHandler))
		m = New(Options{
			Pool:       pool,
			Store:      downStore{},
			InDatabase: inDatabase,
			Snapshot:   snapshot.New(snapshot.Options{}),
			Progress:   projections.NewProgress(nil, 0),
			Signs:      always,
			Jobs:       queue,
			Reactions:  reactions.New(checkpoint, queue, nil),
			Disk:       &Disk{},
		})
		m.observe(t.Context())
		if !strings.HasPrefix(told, want) {
			t.Errorf("before it looks at the rest it tells %q, want %q", told, want)
		}
	}
}
