// Package metering writes down what nodes count of the use of flags, for all nodes together: evaluations by tenant and
// calendar month, and the use of each flag by hour and day.
package usage

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/migrations/database"
	"flagledger/projections/usage/counted"
)

// Meter counts the evaluations of a node in memory, and adds them and the uses of flags to those of all nodes in a
// database. The errors of Evaluations are database.ErrUnavailable while the database cannot be reached.
type Meter struct {
	db     *pgxpool.Pool
	uses   Uses
	now    func() time.Time
	run    uuid.UUID // of this process
	counts *xsync.Map[slot, *count]
}

// Uses counts how flags are used on a node.
type Uses interface {
	// TakeUses yields what has changed since it was last yielded.
	TakeUses() iter.Seq[counted.Use]
	// UsesWritten says that all that TakeUses yielded was written down, or is to be yielded again.
	UsesWritten(now time.Time)
}

// slot is what a count is of.
type slot struct {
	tenantID string
	month    int // of the era: 12 times the year, and the month
}

// count is how often a tenant's flags were evaluated here in a month.
type count struct {
	total   atomic.Int64
	written int64 // how much of it is in the database; Run's alone
}

// New returns a meter over a database, which also writes down uses. now tells the time.
func New(db *pgxpool.Pool, uses Uses, now func() time.Time) *Meter {
	return &Meter{db: db, uses: uses, now: now, run: uuid.New(), counts: xsync.NewMap[slot, *count]()}
}

func monthOf(t time.Time) int {
	year, month, _ := t.UTC().Date()
	return 12*year + int(month) - 1
}

func firstDay(month int) time.Time {
	return time.Date(month/12, time.Month(month%12+1), 1, 0, 0, 0, 0, time.UTC)
}

// Count counts evaluations of a tenant's flags now. It only remembers; Run writes it down.
func (m *Meter) Count(tenantID string, evaluations int) {
	at := slot{tenantID, monthOf(m.now())}
	c, ok := m.counts.Load(at)
	if !ok {
		c, _ = m.counts.LoadOrStore(at, &count{})
	}
	c.total.Add(int64(evaluations))
}

// Evaluations tells how often a tenant's flags have been evaluated in the current month: on this node until now, on
// others as far as they have written it down.
func (m *Meter) Evaluations(ctx context.Context, tenantID string) (n int64, err error) {
	at := slot{tenantID, monthOf(m.now())}
	err = m.db.QueryRow(ctx, `select coalesce(sum(count), 0)::bigint from keep.evaluations where tenant_id = $1
		and month = $2 and run <> $3`,
		tenantID, firstDay(at.month), m.run).
		Scan(&n)
	if err != nil {
		return 0, database.Classify(err)
	}
	if c, ok := m.counts.Load(at); ok {
		n += c.total.Load()
	}
	return n, nil
}

const flushTimeout = 5 * time.Second // also of the last one, which a node waits for when it ends

// Run writes the counts down at an interval until ctx ends, and then once more. What cannot be written is kept.
func (m *Meter) Run(ctx context.Context, interval time.Duration, log *slog.Logger) {
	every(ctx, interval, func() {
		if err := m.flush(ctx, flushTimeout, false); err != nil && ctx.Err() == nil {
			log.Warn("the use of flags could not be written down; it is kept for the next attempt", "err", err)
		}
	})
	if err := m.flush(context.WithoutCancel(ctx), flushTimeout, true); err != nil {
		log.Error("the last use of flags could not be written down; it is missing from the tenants' usage and metrics",
			"err", err)
	}
}

// every calls do once per interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// flush writes down what has changed since it was last written, and forgets what will not change any more. It hurries
// where somebody waits for it.
func (m *Meter) flush(ctx context.Context, timeout time.Duration, hurry bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return errors.Join(m.flushMonths(ctx), m.flushUses(ctx, hurry)) // what is small first: the time is for both
}

func (m *Meter) flushMonths(ctx context.Context) error {
	now := m.now()
	over := monthOf(now.Add(-time.Hour)) // months before it; evaluations of the last moments may not be counted yet
	var tenants []string
	var months []time.Time
	var totals []int64
	var changed []*count
	m.counts.Range(func(at slot, c *count) bool {
		total := c.total.Load()
		if total == c.written {
			if at.month < over {
				m.counts.Delete(at)
			}
			return true
		}
		tenants = append(tenants, at.tenantID)
		months = append(months, firstDay(at.month))
		totals = append(totals, total)
		changed = append(changed, c)
		return true
	})
	if len(changed) == 0 {
		return nil
	}
	_, err := m.db.Exec(ctx, `insert into keep.evaluations (tenant_id, month, run, count)
		select t, m, $1, n from unnest($2::text[], $3::date[], $4::bigint[]) as c (t, m, n)
		on conflict (tenant_id, month, run) do update set count = greatest(evaluations.count, excluded.count)`, m.run, tenants, months, totals)
	if err != nil {
		return err
	}
	for i, c := range changed {
		c.written = totals[i]
	}
	return nil
}

// AddUpMonths makes one row of all that runs have counted for a tenant in a month that has been over for a month. What
// a run writes down even later is added to it, so it may be repeated.
func (m *Meter) AddUpMonths(ctx context.Context) error {
	_, err := m.db.Exec(ctx, `with parts as (
			delete from keep.evaluations where month < $1 and run <> $2 returning tenant_id, month, count
		)
		insert into keep.evaluations (tenant_id, month, run, count)
		select tenant_id, month, $2, sum(count) from parts group by tenant_id, month
		on conflict (tenant_id, month, run) do update set count = evaluations.count + excluded.count`,
		firstDay(monthOf(m.now())-1), uuid.Nil)
	return err
}
