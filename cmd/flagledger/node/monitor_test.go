package node

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands/jobs"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/reactions"
	"flagledger/projections/snapshot"
)

// Anyone may ask for the health.
func TestHealthTellsNeitherWhoseStreamsAreParkedNorHowMuchTenantsChange(t *testing.T) {
	m := newMonitor(&monitor{snapshot: snapshot.New(), progress: projections.NewProgress(nil), disk: &diskWatch{}})
	m.current.Store(&observation{statuses: []projections.Status{
		{Name: "flags", Built: true, Lag: 1234, Behind: modelLate + 1},
		{Name: "audit", Built: true, Parked: []projections.Parked{{Stream: "flag-t.secret-plan"}, {Stream: "user-u"}}},
	}})
	if got := strings.Join(m.health(), "; "); got != "the read model flags is more than 30s behind; the read model audit has parked streams" {
		t.Errorf("it tells: %s", got)
	}
}

func TestHealthTellsOfJobsThatFail(t *testing.T) {
	o := jobsObservation{
		counts: []jobs.Count{{Kind: "mail", State: "discarded", N: 2, Failing: 2}, {Kind: "mail", State: "retryable", N: 5, Failing: 1}, {Kind: "upkeep", State: "available", N: 9}},
		lag:    7, behind: reactionsLate + 1,
	}
	if got := strings.Join(o.health(), "; "); got != "jobs failed five times or were given up; no jobs have been made for more than 10s from what has happened" {
		t.Errorf("it tells: %s", got)
	}
	o = jobsObservation{counts: []jobs.Count{{Kind: "mail", State: "retryable", N: 5}}, lag: 7, behind: reactionsLate}
	if got := o.health(); len(got) != 0 {
		t.Errorf("it tells of what is in order: %v", got)
	}
}

// withoutClock has the statement that reads the database's clock run out of time.
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
	m := newMonitor(&monitor{
		pool: pool, store: store, inDatabase: true, snapshot: snapshot.New(), progress: projections.NewProgress(nil),
		jobs: jobsMonitor{queue, reactions.New(pool, store, queue, log)}, disk: &diskWatch{},
	})
	m.current.Store(&observation{skew: time.Hour})
	m.observe(t.Context())
	got := strings.Join(m.health(), "; ")
	if strings.Contains(got, "cannot be reached") || !strings.Contains(got, "the clock of this node is 1h0m0s ahead") {
		t.Errorf("it tells: %s", got)
	}
}
