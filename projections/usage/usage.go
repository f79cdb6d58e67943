// Package usage counts how flags are used: in memory (count.go), written to tables of schema keep every few seconds
// (flush.go, page.go), summed by day and month (days.go, months.go), removed (gone.go), and read as metrics.
//
// It is among the projections, below the snapshot: a flag of the snapshot holds its usage, because finding that in a
// map of all flags would cost more than evaluating most flags. Queries and http read from it.
package usage

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Meter counts the usage of flags on a node, and reads that of all nodes. Its methods return the errors of package
// database.
type Meter struct {
	db            *pgxpool.Pool
	unpaidCreator func(tenantID string) string
	now           func() time.Time
	run           uuid.UUID     // of this process
	addsToRun     bool          // flushes add to the rows of run in place of replacing them: they are reports
	lastHour      atomic.Uint32 // see clock
	striped       atomic.Int64  // how many counters have got stripes in this hour

	mu                     sync.Mutex
	pending, pendingTotals []*window // what has counted something since it was last written
	windows                *window   // the last of all that flags have
	totals                 map[totalKey]*total
	firstHour              uint32         // see dropBefore
	spent                  map[string]int // see spend
	months                 map[monthKey]*month
}

type totalKey struct{ tenantID, environmentID string }

// New returns a meter over a database. unpaidCreator returns the creator of a free tenant, and is empty for others.
func New(db *pgxpool.Pool, unpaidCreator func(tenantID string) string, now func() time.Time) *Meter {
	m := &Meter{
		db: db, unpaidCreator: unpaidCreator, now: now, run: uuid.New(),
		totals: map[totalKey]*total{}, spent: map[string]int{}, months: map[monthKey]*month{},
	}
	m.lastHour.Store(hourOf(now()) + 1)
	return m
}

func hourOf(t time.Time) uint32 { return uint32(t.Unix() / 3600) }

func timeOfHour(hour uint32) time.Time { return time.Unix(int64(hour)*3600, 0).UTC() }

// Run flushes the counts at an interval until ctx ends, and then once more.
func (m *Meter) Run(ctx context.Context, interval time.Duration, log *slog.Logger) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			if err := m.flush(ctx, flushTimeout, false); err != nil && ctx.Err() == nil {
				log.Warn("the usage of flags could not be written; the next attempt writes it", "err", err)
			}
		}
	}
	if err := m.flush(context.WithoutCancel(ctx), flushTimeout, true); err != nil {
		log.Error("the last usage of flags could not be written; it is missing from the tenants' usage and metrics",
			"err", err)
	}
}

// flush writes what has been counted since it was last written. It hurries if the node waits for it.
func (m *Meter) flush(ctx context.Context, timeout time.Duration, hurry bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return errors.Join(m.flushMonths(ctx), m.flushWindows(ctx, hurry)) // what is small first: the time is for both
}
