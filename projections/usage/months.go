package usage

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/migrations/database"
)

// month counts the evaluations of a tenant's flags in a month, prefetched ones too.
type month struct {
	counter
	stored int64 // how much of it is in the database; only a flush uses it
}

type monthKey struct {
	tenantID string
	month    int // 12 times the year, and the month from 0
}

func monthOf(t time.Time) int {
	year, month, _ := t.UTC().Date()
	return 12*year + int(month) - 1
}

func monthOfHour(hour uint32) int { return monthOf(timeOfHour(hour)) }

func firstDay(month int) time.Time {
	return time.Date(month/12, time.Month(month%12+1), 1, 0, 0, 0, 0, time.UTC)
}

// tenantMonth finds or adds the month of a tenant. mu must be held.
func (m *Meter) tenantMonth(tenantID string, at int) *month {
	key := monthKey{tenantID, at}
	if m.months[key] == nil {
		m.months[key] = &month{}
	}
	return m.months[key]
}

// countedHere returns what this node has counted for a tenant in this month and the last.
func (m *Meter) countedHere(tenantID string) map[int]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	here := map[int]int64{}
	now := monthOf(m.now())
	for at := now - 1; at <= now; at++ {
		if of := m.months[monthKey{tenantID, at}]; of != nil {
			here[at] = of.load()
		}
	}
	return here
}

// Evaluations returns how often a tenant's flags have been evaluated in the current month: on this node until now, on
// others as far as they have flushed.
func (m *Meter) Evaluations(ctx context.Context, tenantID string) (n int64, err error) {
	at := monthOf(m.now())
	err = m.db.QueryRow(ctx, `select coalesce(sum(count), 0)::bigint from keep.evaluations where tenant_id = $1
		and month = $2 and run <> $3`, tenantID, firstDay(at), m.run).Scan(&n)
	return n + m.countedHere(tenantID)[at], database.Classify(err)
}

// flushMonths writes the months that have changed, and drops those that are over.
func (m *Meter) flushMonths(ctx context.Context) error {
	var tenants []string
	var months []time.Time
	var totals []int64
	var changed []*month
	m.mu.Lock()
	over := monthOfHour(m.firstHour)
	for at, of := range m.months {
		switch total := of.load(); {
		case total != of.stored:
			tenants, months, totals = append(tenants, at.tenantID), append(months, firstDay(at.month)), append(totals, total)
			changed = append(changed, of)
		case at.month < over:
			delete(m.months, at)
		}
	}
	m.mu.Unlock()
	if len(changed) == 0 {
		return nil
	}
	_, err := m.db.Exec(ctx, `insert into keep.evaluations (tenant_id, month, run, count)
		select t, m, $1, n from unnest($2::text[], $3::date[], $4::bigint[]) as c (t, m, n)
		on conflict (tenant_id, month, run) do update set count = greatest(evaluations.count, excluded.count)`,
		m.run, tenants, months, totals)
	if err != nil {
		return err
	}
	for i, of := range changed {
		of.stored = totals[i]
	}
	return nil
}

// SumMonths makes one row of all that runs have counted for a tenant in a month that has been over for a month. What
// a run writes even later is added to it, so it may be repeated.
func (m *Meter) SumMonths(ctx context.Context) error {
	_, err := m.db.Exec(ctx, `with parts as (
			delete from keep.evaluations where month < $1 and run <> $2 returning tenant_id, month, count
		)
		insert into keep.evaluations (tenant_id, month, run, count)
		select tenant_id, month, $2, sum(count) from parts group by tenant_id, month
		on conflict (tenant_id, month, run) do update set count = evaluations.count + excluded.count`,
		firstDay(monthOf(m.now())-1), uuid.Nil)
	return err
}

// Restart begins the count of SinceRestart anew, for the cleanup of a sandbox that was asked for at a time. Evaluations
// that other nodes have not written yet count as later.
func (m *Meter) Restart(ctx context.Context, tenantID string, asked time.Time) error {
	total, err := m.total(ctx, tenantID)
	if err == nil {
		_, err = m.db.Exec(ctx, `insert into keep.evaluation_restarts as old (tenant_id, evaluations, restarted_at)
			values ($1, $2, $3) on conflict (tenant_id) do update
				set evaluations = excluded.evaluations, restarted_at = greatest(old.restarted_at, excluded.restarted_at)`,
			tenantID, total, asked)
	}
	return database.Classify(err)
}

// RestartedSince reports whether Restart was called for a cleanup that was asked for at a time or later.
func (m *Meter) RestartedSince(ctx context.Context, tenantID string, asked time.Time) (restarted bool, err error) {
	err = m.db.QueryRow(ctx, `select exists (select from keep.evaluation_restarts where tenant_id = $1
		and restarted_at >= $2)`, tenantID, asked).Scan(&restarted)
	return restarted, database.Classify(err)
}

// SinceRestart returns how often a tenant's flags have been evaluated since Restart, or ever: on this node until now,
// on others as far as they have flushed.
func (m *Meter) SinceRestart(ctx context.Context, tenantID string) (n int64, err error) {
	total, err := m.total(ctx, tenantID)
	if err == nil {
		err = m.db.QueryRow(ctx, `select $2 - coalesce((select evaluations from keep.evaluation_restarts
			where tenant_id = $1), 0)`, tenantID, total).Scan(&n)
	}
	return max(n, 0), database.Classify(err)
}

// total returns the evaluations of all months.
func (m *Meter) total(ctx context.Context, tenantID string) (n int64, err error) {
	here := m.countedHere(tenantID) // earlier months have been written, and may have been summed
	rows, err := m.db.Query(ctx, `select month, run, count from keep.evaluations where tenant_id = $1`, tenantID)
	if err != nil {
		return 0, err
	}
	var month time.Time
	var run uuid.UUID
	var count int64
	_, err = pgx.ForEachRow(rows, []any{&month, &run, &count}, func() error {
		if _, counted := here[monthOf(month)]; run != m.run || !counted {
			n += count
		}
		return nil
	})
	for _, counted := range here {
		n += counted
	}
	return n, err
}
