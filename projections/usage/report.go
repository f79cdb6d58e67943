package usage

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/migrations/database"
	"flagledger/projections/snapshot/evaluation"
)

const (
	// ReportAge is how old the hours of a report may be, and for how long the service remembers reports at least.
	ReportAge = 24 * time.Hour
	// rememberReports is for how long reports are remembered.
	rememberReports = 2 * ReportAge
)

// reportsRun stands in the rows of all reports, which add to them. A node replaces the rows of its own run.
var reportsRun = uuid.Max

// Names among reasons.
const (
	// reportedReason counts how many evaluations were reported.
	reportedReason = "REPORTED"
	// requiredReason counts evaluations on behalf of other flags, which are not among the evaluations.
	requiredReason = "REQUIRED"
)

// Reported is a count in a report: evaluations of a flag with a result, or prefetches of it, or of all flags.
type Reported struct {
	FlagKey       string // empty for prefetches of all flags
	Life          uint32 // see Flag.Life
	EnvironmentID string
	Result        evaluation.Result
	Prefetch      bool
	Required      bool // the evaluations were on behalf of other flags
	ClientID      string
	Hour          time.Time // a whole one
	Count         int64
}

// rest returns 1 for one of the rest, and else 0.
func (r *Reported) rest() int {
	if r.Result.Variation == RestOutcome {
		return 1
	}
	return 0
}

// Report counts what a caller reports, once for each report id, and always without one. It returns false for a report
// that was taken before, which changes nothing. All of a report is counted, or nothing. A report of several hours may
// deadlock with a flush: one of them fails then, and is to be tried again.
func (m *Meter) Report(
	ctx context.Context, tenantID, caller, reportID string, counts []Reported,
) (fresh bool, err error) {
	counted := m.countReport(tenantID, counts)
	err = pgx.BeginFunc(ctx, m.db, func(tx pgx.Tx) error {
		// rows of the same run are added to by one report at a time
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('usage reports ' || $1, 0))`,
			tenantID); err != nil {
			return err
		}
		fresh = true
		if reportID != "" {
			tag, err := tx.Exec(ctx, `insert into keep.usage_reports (tenant_id, caller, report_id, taken_at)
				values ($1, $2, $3, $4) on conflict do nothing`, tenantID, caller, reportID, m.now())
			if fresh = tag.RowsAffected() > 0; err != nil || !fresh {
				return err
			}
		}
		for _, p := range counted.pages() {
			if err := tx.SendBatch(ctx, p.batch(counted)).Close(); err != nil {
				return err
			}
		}
		return counted.addMonths(ctx, tx)
	})
	return fresh, database.Classify(err)
}

// countReport returns a meter that has counted what a report says, and nothing else.
func (m *Meter) countReport(tenantID string, counts []Reported) *Meter {
	counted := New(m.db, m.unpaidCreator, m.now)
	counted.run, counted.addsToRun = reportsRun, true
	counted.lastHour.Store(math.MaxUint32)
	flags := map[string]*Flag{}
	// A flag has one window at a time, of the latest hour. After one of the rest, a window takes no new outcomes.
	counts = slices.SortedFunc(slices.Values(counts), func(a, b Reported) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.rest(), b.rest()))
	})
	for _, c := range counts {
		at := c.Hour.Add(time.Hour - time.Second)
		if now := m.now(); now.Before(at) {
			at = now
		}
		if c.FlagKey == "" {
			counted.prefetchAll(tenantID, c.EnvironmentID, c.ClientID, at, c.Count)
			continue
		}
		f := flags[c.FlagKey]
		if f == nil {
			f = NewFlag(c.FlagKey, c.Life)
			flags[c.FlagKey] = f
		}
		switch {
		case c.Prefetch:
			counted.prefetchOne(tenantID, f, c.EnvironmentID, at, c.Count)
		case c.Required:
			counted.require(tenantID, f, c.EnvironmentID, &c.Result, at, c.Count)
		default:
			counted.count(tenantID, f, c.EnvironmentID, &c.Result, c.ClientID, at, c.Count)
		}
	}
	return counted
}

// pages returns all that the meter has counted, a page for each hour.
func (m *Meter) pages() (pages []*page) {
	windows := m.takePending()
	slices.SortStableFunc(windows, func(a, b *window) int { return cmp.Compare(a.total.hour, b.total.hour) })
	for len(windows) > 0 {
		n := slices.IndexFunc(windows, func(w *window) bool { return w.total.hour != windows[0].total.hour })
		if n < 0 {
			n = len(windows)
		}
		pages, windows = append(pages, m.newPage(windows[:n])), windows[n:]
	}
	return pages
}

// addMonths adds the months that the meter has counted.
func (m *Meter) addMonths(ctx context.Context, tx pgx.Tx) error {
	for of, counted := range m.months {
		_, err := tx.Exec(ctx, `insert into keep.evaluations (tenant_id, month, run, count) values ($1, $2, $3, $4)
			on conflict (tenant_id, month, run) do update set count = evaluations.count + excluded.count`,
			of.tenantID, firstDay(of.month), m.run, counted.load())
		if err != nil {
			return err
		}
	}
	return nil
}

// ForgetReports removes the ids of reports that can no longer be sent again.
func (m *Meter) ForgetReports(ctx context.Context) error {
	return m.deleteRows(ctx, "usage_reports", "taken_at < $1", m.now().Add(-rememberReports))
}
