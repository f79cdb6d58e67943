package usage

import (
	"context"
	"fmt"
	"iter"
	"time"

	"flagledger/events"
	"flagledger/migrations/database"

	"github.com/jackc/pgx/v5"
)

// Metrics sums how often a flag, or all flags of a tenant, were evaluated and prefetched in a period.
type Metrics struct {
	Evaluations int64
	Prefetches  int64
	Reported    int64 // how many of the evaluations were reported
	Required    int64 // evaluations on behalf of other flags, which are not among the evaluations
	Points      []Point
	Clients     []ClientUse // most active first

	life int64 // of the flag
}

// FlagEvaluations counts the evaluations of a flag.
type FlagEvaluations struct {
	Key         string
	Evaluations int64
}

// MetricsFilter selects metrics. A flag's metrics cover the tenant's current environments, because counts are deleted
// with their environment.
type MetricsFilter struct {
	Period
	TenantID     string
	Environments []string // the ids of the current ones
	Environment  string   // the id of a single one; empty for all
	Now          time.Time
}

// ErrLargeOutcomes reports that the values of all points' outcomes exceed maxOutcomeBytes.
var ErrLargeOutcomes = fmt.Errorf("leads to more than %s of values: ask for fewer points",
	events.SizeText(maxOutcomeBytes))

const maxOutcomeBytes = 32 << 20

const (
	topFlags = 20
	// maxHoursAge is longer than hours are stored: days long before are rolled up.
	maxHoursAge = 35 * 24 * time.Hour
)

// FlagMetrics reads the metrics of a flag. It returns database.ErrNotFound if the tenant has no flag with that key, and
// ErrLargeOutcomes. FlagPoints reads the outcomes of its points.
func (m *Meter) FlagMetrics(ctx context.Context, filter MetricsFilter, key string) (all Metrics, err error) {
	err = m.readMetrics(ctx, filter, func(r *metricsReader) error {
		if err := r.tx.QueryRow(ctx, `select created_version from read.flags where tenant_id = $1 and key = $2`, filter.TenantID, key).
			Scan(&r.life); err != nil {
			return err
		}
		r.key = key
		all, err = r.metrics(ctx)
		all.life = r.life
		return err
	})
	if err == nil && sizeOfOutcomes(all.Points) > maxOutcomeBytes {
		return all, ErrLargeOutcomes
	}
	return all, database.Classify(err)
}

// TenantMetrics reads the metrics of all flags of a tenant, also deleted ones.
func (m *Meter) TenantMetrics(ctx context.Context, filter MetricsFilter) (all Metrics, err error) {
	err = m.readMetrics(ctx, filter, func(r *metricsReader) error {
		all, err = r.metrics(ctx)
		return err
	})
	return all, database.Classify(err)
}

// TopFlags lists the existing flags of a tenant that were evaluated most. It reads a row for each flag, environment
// and day.
func (m *Meter) TopFlags(ctx context.Context, filter MetricsFilter) (top []FlagEvaluations, err error) {
	err = m.readMetrics(ctx, filter, func(r *metricsReader) error {
		rows, err := r.tx.Query(ctx, `
			with uses as (
				select flag_key, life, evaluations from keep.flag_days where tenant_id = $1 and day = any($2::date[])
					and environment_id = any($4)
				union all
				select flag_key, life, evaluations from keep.flag_hours where tenant_id = $1 and hour = any($3)
					and environment_id = any($4)
			), sums as (select flag_key, life, sum(evaluations)::bigint as evaluations from uses group by flag_key, life)
			select s.flag_key as key, s.evaluations from sums s join read.flags f on f.tenant_id = $1 and f.key = s.flag_key
				and f.created_version = s.life
			where s.evaluations > 0 order by s.evaluations desc, s.flag_key limit $5`, filter.TenantID, r.days, r.hours, filter.flagEnvironments(), topFlags)
		if err != nil {
			return err
		}
		top, err = pgx.CollectRows(rows, pgx.RowToStructByName[FlagEvaluations])
		return err
	})
	return top, database.Classify(err)
}

// flagEnvironments returns the ids of the environments whose counts are summed. The empty id stands for uses that were
// not tracked individually.
func (f MetricsFilter) flagEnvironments() []string {
	if f.Environment != "" {
		return []string{f.Environment}
	}
	return append([]string{""}, f.Environments...)
}

// metricsReader reads usage counts in one snapshot of the database.
type metricsReader struct {
	MetricsFilter
	tx pgx.Tx
	// days are the rolled-up days of the period, hours all other hours: together they hold all counts.
	days, hours []time.Time
	key         string // of the flag; empty for the whole tenant
	life        int64
}

func (m *Meter) readMetrics(ctx context.Context, filter MetricsFilter, read func(*metricsReader) error) error {
	atOnce := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, m.db, atOnce, func(tx pgx.Tx) error {
		r := &metricsReader{MetricsFilter: filter, tx: tx}
		complete, err := SummedDays(ctx, tx, filter.TenantID, filter.From, filter.To)
		if err != nil {
			return err
		}
		r.split(complete)
		return read(r)
	})
}

// SummedDays lists the days of a tenant from one day until before another whose hours have been rolled up.
func SummedDays(ctx context.Context, db querier, tenantID string, from, to time.Time) ([]time.Time, error) {
	return collect[time.Time](ctx, db,
		`select day from keep.use_days where tenant_id = $1 and day >= $2::date and day < $3::date`, tenantID, from, to)
}

// split divides the period into complete days and hours.
func (r *metricsReader) split(complete []time.Time) {
	isComplete := make(map[int64]bool, len(complete))
	for _, day := range complete {
		isComplete[day.Unix()] = true
	}
	r.days, r.hours = []time.Time{}, []time.Time{}
	for at := r.From; at.Before(r.To); {
		whole := at.Equal(at.Truncate(Daily)) && !at.Add(Daily).After(r.To) && isComplete[at.Unix()]
		// Otherwise the points would not show what is rolled up.
		if next := at.Add(Daily); whole && (r.Step == Daily || r.hasHours(at)) {
			r.days, at = append(r.days, at), next
			continue
		}
		if r.hasHours(at) {
			r.hours = append(r.hours, at)
		}
		at = at.Add(Hourly)
	}
}

// hasHours reports whether hours of a time may be stored. Hourly points have none that may be deleted soon: their day
// is read as a day.
func (r *metricsReader) hasHours(at time.Time) bool {
	if r.Step == Hourly {
		return !at.Before(r.Now.Truncate(Daily).AddDate(0, 0, -DaysOfHours))
	}
	return r.Now.Sub(at) < maxHoursAge
}

// pointHours returns the hours and days that points are read from. Hourly points are read from hours only.
func (r *metricsReader) pointHours() (days, hours []time.Time) {
	if r.Step == Daily {
		return r.days, r.hours
	}
	for i := range r.Points() {
		if at := r.At(i); r.hasHours(at) {
			hours = append(hours, at)
		}
	}
	return []time.Time{}, hours
}

// readAtOnce limits the hours and days of a flag that are read at once; a daily point can have 24 hours. Only their
// outcomes are in memory: 20 for each environment, hour and run.
const readAtOnce = 24

// parts divides the hours and days into parts of whole points, in order. A tenant has no outcomes, so it has one part.
func (r *metricsReader) parts() iter.Seq2[[]time.Time, []time.Time] {
	return func(yield func(days, hours []time.Time) bool) {
		days, hours := r.pointHours()
		if r.key == "" {
			yield(days, hours)
			return
		}
		d, h := 0, 0
		for i := range r.Points() {
			end := r.At(i).Add(r.Step)
			inPoint := func(list []time.Time, n int) int {
				for n < len(list) && list[n].Before(end) {
					n++
				}
				return n
			}
			nextD, nextH := inPoint(days, d), inPoint(hours, h)
			if d+h > 0 && nextD+nextH > readAtOnce {
				if !yield(days[:d], hours[:h]) {
					return
				}
				days, hours, nextD, nextH = days[d:], hours[h:], nextD-d, nextH-h
			}
			d, h = nextD, nextH
		}
		if d+h > 0 {
			yield(days, hours)
		}
	}
}

// metrics sums the points and the clients.
func (r *metricsReader) metrics(ctx context.Context) (m Metrics, err error) {
	p := newPoints(r.Period, nil)
	for days, hours := range r.parts() {
		if err := r.addPart(ctx, p, days, hours); err != nil {
			return m, err
		}
	}
	m.Points = p.all
	for _, point := range m.Points {
		m.Evaluations += point.Evaluations
		m.Prefetches += point.Prefetches
		m.Reported += point.Reported
		m.Required += point.Required
	}
	rows, err := r.uses(ctx, "clients", r.days, r.hours)
	if err != nil {
		return m, err
	}
	all := clients{}
	var at time.Time
	var text []byte
	if _, err = pgx.ForEachRow(rows, []any{&at, &text}, func() error { return all.add(text) }); err != nil {
		return m, err
	}
	m.Clients = all.mostActive()
	return m, r.nameClients(ctx, m.Clients)
}

// addPart adds some hours and days to the points.
func (r *metricsReader) addPart(ctx context.Context, p *points, days, hours []time.Time) (err error) {
	columns := "evaluations, prefetches, reasons, null::text"
	if r.key != "" {
		columns = "evaluations, prefetches, reasons, outcomes"
		if p.known, err = r.outcomes(ctx, days, hours); err != nil {
			return err
		}
	}
	rows, err := r.uses(ctx, columns, days, hours)
	if err != nil {
		return err
	}
	var u use
	if _, err = pgx.ForEachRow(
		rows, []any{&u.At, &u.Evaluations, &u.Prefetches, &u.Reasons, &u.Outcomes}, func() error { return p.add(u) },
	); err != nil {
		return err
	}
	p.finish()
	return nil
}

// uses reads columns of the rows of hours and days, in order of time.
func (r *metricsReader) uses(ctx context.Context, columns string, days, hours []time.Time) (pgx.Rows, error) {
	sql, args := r.usesQuery(columns, days, hours)
	return r.tx.Query(ctx, sql+" order by at", args...)
}

// usesQuery returns a query for columns of the rows of hours and days, and its arguments.
func (r *metricsReader) usesQuery(columns string, days, hours []time.Time) (string, []any) {
	of, args := "tenant", []any{r.TenantID, days, hours}
	where := func(condition string, value any) string {
		args = append(args, value)
		return fmt.Sprintf(" and "+condition, len(args))
	}
	var conditions string
	switch {
	case r.key != "":
		of = "flag"
		conditions = where("flag_key = $%d", r.key) + where("life = $%d", r.life) +
			where("environment_id = any($%d)", r.flagEnvironments())
	case r.Environment != "":
		conditions = where("environment_id = $%d", r.Environment)
	}
	return fmt.Sprintf(`
		select day::timestamp at time zone 'UTC' as at, %[1]s from keep.%[2]s_days where tenant_id = $1
			and day = any($2::date[])%[3]s
		union all
		select hour, %[1]s from keep.%[2]s_hours where tenant_id = $1 and hour = any($3)%[3]s`, columns, of, conditions), args
}

func (r *metricsReader) nameClients(ctx context.Context, list []ClientUse) error {
	var ids []string
	for _, c := range list {
		if c.ClientID != nil {
			ids = append(ids, *c.ClientID)
		}
	}
	names, err := namesOf(ctx, r.tx, `
		select id, name from read.oauth_clients where tenant_id = $1 and id = any($2)
		union all select id, key ->> 'name' from read.evaluation_keys where tenant_id = $1 and id = any($2)`,
		r.TenantID, ids)
	for i, c := range list {
		if c.ClientID != nil {
			list[i].Name = names[*c.ClientID]
		}
	}
	return err
}

// namesOf reads names by ids.
func namesOf(ctx context.Context, db querier, query string, args ...any) (map[string]*string, error) {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	names := map[string]*string{}
	var id, name string
	_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error {
		names[id] = new(name)
		return nil
	})
	return names, err
}

// outcomes reads the outcomes of the flag in some hours and days without their names and values. All outcomes ever
// might be very many.
func (r *metricsReader) outcomes(ctx context.Context, days, hours []time.Time) (map[string]*Outcome, error) {
	uses, args := r.usesQuery("outcomes", days, hours)
	rows, err := r.tx.Query(
		ctx,
		fmt.Sprintf(`select outcome, variation_id, octet_length(value::text) from keep.flag_outcomes
		where tenant_id = $1 and flag_key = $%d and life = $%d
			and outcome = any(array(select distinct json_object_keys(u.outcomes::json) from (%s) u))`, len(args)+1, len(args)+2, uses),
		append(args, r.key, r.life)...)
	if err != nil {
		return nil, err
	}
	known := map[string]*Outcome{}
	var o Outcome
	_, err = pgx.ForEachRow(rows, []any{&o.id, &o.VariationID, &o.size}, func() error {
		known[o.id] = new(o)
		return nil
	})
	return known, err
}

func sizeOfOutcomes(points []Point) (n int) {
	for _, p := range points {
		for _, o := range p.Outcomes {
			if o.Outcome != nil {
				n += o.size
			}
		}
	}
	return n
}
