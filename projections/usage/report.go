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

// reportsRun is the run of all that is reported: reports add to its rows, while nodes replace those of their own runs.
var reportsRun = uuid.Max

// reportedReason is the name among reasons that counts how many evaluations were reported.
const reportedReason = "REPORTED"

// Reported is a count in a report: evaluations of a flag with a result, or prefetches of it, or of all flags.
type Reported struct {
	FlagKey       string // empty for prefetches of all flags
	Life          uint32 // see Flag.Life
	EnvironmentID string
	Result        evaluation.Result
	Prefetch      bool
	ClientID      string
	Hour          time.Time // a whole one
	Count         int64
}

// Report counts what a caller reports, once for each report id. It returns false for a report that was taken before,
// which changes nothing. All of a report is counted, or nothing.
func (m *Meter) Report(
	ctx context.Context, tenantID, caller, reportID string, counts []Reported,
) (fresh bool, err error) {
	own := m.countReport(tenantID, counts)
	err = pgx.BeginFunc(ctx, m.db, func(tx pgx.Tx) error {
		// rows of the same run are added to by one report at a time
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('usage reports ' || $1, 0))`,
			tenantID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `insert into keep.usage_reports (tenant_id, caller, report_id, taken_at)
			values ($1, $2, $3, $4) on conflict do nothing`, tenantID, caller, reportID, m.now())
		if fresh = tag.RowsAffected() > 0; err != nil || !fresh {
			return err
		}
		for _, p := range own.pages() {
			if err := tx.SendBatch(ctx, p.batch(own)).Close(); err != nil {
				return err
			}
		}
		return own.addMonths(ctx, tx)
	})
	return fresh, database.Classify(err)
}

// countReport returns a meter that has counted what a report says, and nothing else.
func (m *Meter) countReport(tenantID string, counts []Reported) *Meter {
	own := New(m.db, m.unpaidCreator, m.now)
	own.run, own.reports = reportsRun, true
	own.lastHour.Store(math.MaxUint32)
	flags := map[string]*Flag{}
	// a flag has one window at a time, of the latest hour
	counts = slices.SortedFunc(slices.Values(counts), func(a, b Reported) int { return a.Hour.Compare(b.Hour) })
	for _, c := range counts {
		at := c.Hour.Add(time.Hour - time.Second)
		if now := m.now(); now.Before(at) {
			at = now
		}
		if c.FlagKey == "" {
			own.prefetchAll(tenantID, c.EnvironmentID, c.ClientID, at, c.Count)
			continue
		}
		f := flags[c.FlagKey]
		if f == nil {
			f = NewFlag(c.FlagKey, c.Life)
			flags[c.FlagKey] = f
		}
		if c.Prefetch {
			own.prefetchOne(tenantID, f, c.EnvironmentID, at, c.Count)
		} else {
			own.count(tenantID, f, c.EnvironmentID, &c.Result, c.ClientID, at, c.Count)
		}
	}
	return own
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
	_, err := m.db.Exec(ctx, `delete from keep.usage_reports where taken_at < $1`, m.now().Add(-rememberReports))
	return err
}
