package usage

import (
	"context"
	"time"

	"flagledger/migrations/database"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Restart begins the count of SinceRestart anew, for the cleanup of a sandbox that was asked for at a time. Evaluations
// that other nodes have not written yet count as later.
func (m *Meter) Restart(ctx context.Context, tenantID string, asked time.Time) error {
	total, err := m.total(ctx, tenantID)
	if err == nil {
		_, err = m.db.Exec(
			ctx,
			`insert into keep.evaluation_restarts as old (tenant_id, evaluations, restarted_at) values ($1, $2, $3)
			on conflict (tenant_id) do update set evaluations = excluded.evaluations, restarted_at = greatest(old.restarted_at,
				excluded.restarted_at)`,
			tenantID,
			total,
			asked,
		)
	}
	return database.Classify(err)
}

// RestartedSince reports whether Restart was called for a cleanup that was asked for at a time or later.
func (m *Meter) RestartedSince(ctx context.Context, tenantID string, asked time.Time) (restarted bool, err error) {
	err = m.db.QueryRow(ctx, `select exists (select from keep.evaluation_restarts where tenant_id = $1
		and restarted_at >= $2)`, tenantID, asked).
		Scan(&restarted)
	return restarted, database.Classify(err)
}

// SinceRestart tells how often a tenant's flags have been evaluated since Restart, or ever: on this node until now, on
// others as far as they have written it down.
func (m *Meter) SinceRestart(ctx context.Context, tenantID string) (n int64, err error) {
	total, err := m.total(ctx, tenantID)
	if err == nil {
		err = m.db.QueryRow(ctx, `select $2 - coalesce((select evaluations from keep.evaluation_restarts
			where tenant_id = $1), 0)`, tenantID, total).
			Scan(&n)
	}
	return max(n, 0), database.Classify(err)
}

// total counts the evaluations of all months.
func (m *Meter) total(ctx context.Context, tenantID string) (n int64, err error) {
	counted := map[int]int64{} // on this node, by month; earlier ones have been written down, and may have been added up
	from := monthOf(m.now()) - 1
	m.counts.Range(func(at slot, c *count) bool {
		if at.tenantID == tenantID && at.month >= from {
			counted[at.month] = c.total.Load()
		}
		return true
	})
	rows, err := m.db.Query(ctx, `select month, run, count from keep.evaluations where tenant_id = $1`, tenantID)
	if err != nil {
		return 0, err
	}
	var month time.Time
	var run uuid.UUID
	var count int64
	_, err = pgx.ForEachRow(rows, []any{&month, &run, &count}, func() error {
		if _, here := counted[monthOf(month)]; run != m.run || !here {
			n += count
		}
		return nil
	})
	for _, here := range counted {
		n += here
	}
	return n, err
}
