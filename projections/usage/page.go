package usage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"flagledger/projections/snapshot/evaluation"
)

// page is the windows of an hour as columns of the tables. Each row has all that was counted until now, so writing it
// again adds nothing.
type page struct {
	hour           time.Time
	flags, totals  rows
	last           lastUsage
	outcomes       outcomes
	known          map[outcomeKey]bool // the rows in outcomes
	reported       bool                // the counts are of a report
	hash           hash.Hash           // that outcomes are named by
	writtenTenants []string
	written        []writtenCell
}

// rows are those of keep.flag_hours or keep.tenant_hours.
type rows struct {
	tenants, keys, environments, reasons, outcomes, clients []string
	lives, evaluations, prefetches                          []int64
}

// lastUsage has the further columns of keep.flag_uses.
type lastUsage struct {
	evaluated, prefetched, required []*time.Time
	outcome                         []*string
	varied                          []bool
}

// outcomes are rows of keep.flag_outcomes.
type outcomes struct {
	tenants, keys, outcomes, values []string
	lives                           []int64
	variations, names               []*string
}

// outcomeKey is the key of a row of keep.flag_outcomes.
type outcomeKey struct {
	tenantID, key string
	life          uint32
	outcome       string
}

// writtenCell is a cell whose outcome the page writes.
type writtenCell struct {
	*cell
	served *evaluation.Variation
}

// writePage writes windows of one hour.
func (m *Meter) writePage(ctx context.Context, windows []*window) error {
	p := m.newPage(windows)
	if err := m.db.SendBatch(ctx, p.batch(m)).Close(); err != nil { // one transaction
		return err
	}
	for _, c := range p.written {
		c.stored = c.served
	}
	return nil
}

// newPage reads the windows' counts. All nodes write rows in the same order, so that none waits for another that waits
// for it.
func (m *Meter) newPage(windows []*window) *page {
	slices.SortFunc(windows, func(a, b *window) int {
		return cmp.Or(strings.Compare(a.total.tenantID, b.total.tenantID), strings.Compare(a.key(), b.key()),
			cmp.Compare(a.life(), b.life()), strings.Compare(a.total.environmentID, b.total.environmentID))
	})
	p := &page{hour: timeOfHour(windows[0].total.hour), known: map[outcomeKey]bool{}, hash: sha256.New(),
		reported: m.addsToRun}
	for _, w := range windows {
		m.begin(w)
		p.add(w)
	}
	p.writtenTenants = slices.Compact(p.writtenTenants)
	return p
}

func (w *window) key() string {
	if w.flag == nil {
		return ""
	}
	return w.flag.key
}

func (w *window) life() uint32 {
	if w.flag == nil {
		return 0
	}
	return w.flag.life
}

// counts are numbers by name. There are few.
type counts []count

type count struct {
	name string
	n    int64
}

func (c *counts) add(name string, n int64) {
	if i := slices.IndexFunc(*c, func(one count) bool { return one.name == name }); i >= 0 {
		(*c)[i].n += n
	} else if n > 0 {
		*c = append(*c, count{name, n})
	}
}

func (c counts) json() string {
	b := []byte{'{'}
	for _, one := range c {
		b = append(strconv.AppendInt(appendName(b, one.name), one.n, 10), ',')
	}
	return closeJSON(b)
}

// appendName appends a member's name, a text of ours, to an object.
func appendName(b []byte, name string) []byte {
	b, _ = jsontext.AppendQuote(b, name) // the error is of bad UTF-8
	return append(b, ':')
}

// closeJSON ends an object whose members each end with a comma.
func closeJSON(b []byte) string {
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return string(append(b, '}'))
}

var reasons = map[byte]string{
	evaluation.Archived[0]:           string(evaluation.Archived),
	evaluation.Off[0]:                string(evaluation.Off),
	evaluation.PrerequisiteFailed[0]: string(evaluation.PrerequisiteFailed),
	evaluation.RuleMatch[0]:          string(evaluation.RuleMatch),
	evaluation.Fallthrough[0]:        string(evaluation.Fallthrough),
}

func (p *page) add(w *window) {
	var evaluations, required int64
	var lastRequired uint32
	var byReason, byOutcome counts
	var served counts // byOutcome with the evaluations on behalf of other flags
	byClient := []byte{'{'}
	for by := w.clients.Load(); by != nil; by = by.next {
		var n int64
		for c := by.cells.Load(); c != nil; c = c.next {
			counted := c.n.load()
			n += counted
			outcome := ""
			if w.flag != nil {
				outcome = p.addOutcome(w, c)
				served.add(outcome, counted)
			}
			if by.id == requiredClient {
				continue
			}
			byReason.add(reasons[c.reason], counted)
			if w.flag != nil {
				byOutcome.add(outcome, counted)
			}
		}
		if by.id == requiredClient {
			required, lastRequired = n, by.seen.Load()
			continue
		}
		evaluations += n
		if by.id != restClient && (n > 0 || w.flag == nil) {
			byClient = strconv.AppendInt(append(appendName(byClient, by.id), '['), n, 10)
			byClient = strconv.AppendInt(append(byClient, ','), int64(by.seen.Load()), 10)
			if p.reported {
				byClient = strconv.AppendInt(append(byClient, ','), n, 10)
			}
			byClient = append(byClient, "],"...)
		}
	}
	if p.reported {
		byReason.add(reportedReason, evaluations)
	}
	byReason.add(requiredReason, required)
	r := &p.totals
	if w.flag != nil {
		r = &p.flags
		p.addLast(w, lastRequired, served)
	}
	p.writtenTenants = append(p.writtenTenants, w.total.tenantID)
	r.tenants = append(r.tenants, w.total.tenantID)
	r.keys = append(r.keys, w.key())
	r.lives = append(r.lives, int64(w.life()))
	r.environments = append(r.environments, w.total.environmentID)
	r.evaluations, r.prefetches = append(r.evaluations, evaluations), append(r.prefetches, int64(w.prefetches.Load()))
	r.reasons, r.outcomes = append(r.reasons, byReason.json()), append(r.outcomes, byOutcome.json())
	r.clients = append(r.clients, closeJSON(byClient))
}

func (p *page) addLast(w *window, lastRequired uint32, served counts) {
	orNull := func(second uint32) *time.Time {
		if second == 0 {
			return nil
		}
		return new(time.Unix(int64(second), 0))
	}
	l := &p.last
	l.evaluated = append(l.evaluated, orNull(w.evaluated.Load()))
	l.prefetched = append(l.prefetched, orNull(w.prefetched.Load()))
	l.required = append(l.required, orNull(lastRequired))
	var outcome *string
	var most int64
	for _, o := range served {
		if o.n > most && o.name != RestOutcome.ID {
			outcome, most = &o.name, o.n
		}
	}
	l.outcome = append(l.outcome, outcome)
	l.varied = append(l.varied, len(served) > 1 || outcome == nil && len(served) > 0)
}

// addOutcome adds the outcome of a cell, unless it is stored, and returns its name. An outcome is a variation with its
// value, since hours before a change keep what was served then, or a value alone. No two of a flag have the same name.
func (p *page) addOutcome(w *window, c *cell) (name string) {
	served := c.served.Load()
	if served == RestOutcome {
		return RestOutcome.ID
	}
	p.hash.Reset()
	_, _ = p.hash.Write(append([]byte(served.ID), 0))
	_, _ = p.hash.Write(served.Value)
	name = hex.EncodeToString(p.hash.Sum(nil)[:10])
	if served == c.stored {
		return name
	}
	p.written = append(p.written, writtenCell{c, served})
	of := outcomeKey{w.total.tenantID, w.flag.key, w.flag.life, name}
	if p.known[of] { // with another reason, or in another environment
		return name
	}
	p.known[of] = true
	var variation, variationName *string
	if served.ID != "" {
		variation, variationName = &served.ID, &served.Name
	}
	o := &p.outcomes
	o.tenants = append(o.tenants, of.tenantID)
	o.keys = append(o.keys, of.key)
	o.lives = append(o.lives, int64(of.life))
	o.outcomes = append(o.outcomes, name)
	o.variations = append(o.variations, variation)
	o.names = append(o.names, variationName)
	o.values = append(o.values, string(served.Value))
	return name
}

func (p *page) batch(m *Meter) *pgx.Batch {
	b := &pgx.Batch{}
	// rows are found by their keys, however few there were when Postgres last counted them
	b.Queue(`select set_config('enable_seqscan', 'off', true)`)
	day := p.hour.Truncate(Daily)
	// The running day too: this clock cannot tell whether it is over for others.
	if !day.Before(m.now().UTC().Truncate(Daily).AddDate(0, 0, -DaysOfHours)) {
		b.Queue(`select pg_advisory_xact_lock_shared($1::int, $2::int)`, dayLockClass, dayNumber(day))
		// it is to be summed again
		b.Queue(`delete from keep.use_days where tenant_id = any($1) and day = $2`, p.writtenTenants, day)
	}
	if o := &p.outcomes; len(o.keys) > 0 {
		b.Queue(insertOutcomes, pgx.NamedArgs{
			"tenants": o.tenants, "keys": o.keys, "lives": o.lives, "outcomes": o.outcomes, "variations": o.variations,
			"names": o.names, "values": o.values,
		})
	}
	if r := &p.flags; len(r.keys) > 0 {
		args := r.args(p.hour, m)
		args["evaluated"], args["prefetched"], args["required"] = p.last.evaluated, p.last.prefetched, p.last.required
		args["outcome"], args["varied"] = p.last.outcome, p.last.varied
		b.Queue(insertFlagHours, args)
		b.Queue(insertLastUsage, args)
	}
	if r := &p.totals; len(r.keys) > 0 {
		b.Queue(insertTenantHours, r.args(p.hour, m))
	}
	return b
}

func (r *rows) args(hour time.Time, m *Meter) pgx.NamedArgs {
	return pgx.NamedArgs{
		"hour": hour, "run": m.run, "tenants": r.tenants, "keys": r.keys, "lives": r.lives, "environments": r.environments,
		"evaluations": r.evaluations, "prefetches": r.prefetches, "reasons": r.reasons, "outcomes": r.outcomes,
		"clients": r.clients, "adds": m.addsToRun, "most": maxOutcomes, "mostClients": maxClients, "rest": RestOutcome.ID,
	}
}

const (
	// insertOutcomes writes new and changed outcomes: each hour brings the known ones again. A subquery looks each up by
	// its key; a join may be planned otherwise.
	insertOutcomes = `
		insert into keep.flag_outcomes as old (tenant_id, flag_key, life, outcome, variation_id, variation_name, value)
		select t, k, l, o, v, n, j::json
		from unnest(@tenants::text[], @keys::text[], @lives::bigint[], @outcomes::text[], @variations::text[], @names::text[],
			@values::text[]) as u (t, k, l, o, v, n, j)
		where (select f.variation_name is not distinct from n and f.value::text = j from keep.flag_outcomes f
			where f.tenant_id = t and f.flag_key = k and f.life = l and f.outcome = o) is not true
		order by t, k, l, o -- as all nodes do, so that none waits for another that waits for it
		on conflict (tenant_id, flag_key, life, outcome) do update
			set variation_name = excluded.variation_name, value = excluded.value
			where old.variation_name is distinct from excluded.variation_name or old.value::text <> excluded.value::text`

	insertFlagHours = `
		insert into keep.flag_hours as old (tenant_id, flag_key, life, environment_id, hour, run, evaluations, prefetches,
			reasons, outcomes, clients)
		select t, k, l, e, @hour, @run, n, p, r, o, c
		from unnest(@tenants::text[], @keys::text[], @lives::bigint[], @environments::text[], @evaluations::bigint[],
			@prefetches::bigint[], @reasons::text[], @outcomes::text[], @clients::text[]) as u (t, k, l, e, n, p, r, o, c)
		on conflict (tenant_id, hour, flag_key, life, environment_id, run) do update set
			evaluations = excluded.evaluations + case when @adds then old.evaluations else 0 end,
			prefetches = excluded.prefetches + case when @adds then old.prefetches else 0 end,
			reasons = case when @adds then keep.add_counts(old.reasons, excluded.reasons) else excluded.reasons end,
			outcomes = case when @adds then keep.add_outcomes(old.outcomes, excluded.outcomes, @most, @rest)
				else excluded.outcomes end,
			clients = case when @adds then keep.add_clients(old.clients, excluded.clients, @mostClients)
				else excluded.clients end
		where @adds or old.evaluations <= excluded.evaluations and old.prefetches <= excluded.prefetches`

	insertLastUsage = `
		insert into keep.flag_uses as old (tenant_id, flag_key, life, environment_id, last_evaluated, last_prefetched,
			last_required, outcome, outcome_hour, varied_hour)
		select t, k, l, e, v, p, r, o, case when o is not null then @hour::timestamptz end, case when m then @hour::timestamptz end
		from unnest(@tenants::text[], @keys::text[], @lives::bigint[], @environments::text[], @evaluated::timestamptz[],
			@prefetched::timestamptz[], @required::timestamptz[], @outcome::text[], @varied::bool[])
			as u (t, k, l, e, v, p, r, o, m)
		on conflict (tenant_id, flag_key, life, environment_id) do update set
			last_evaluated = greatest(old.last_evaluated, excluded.last_evaluated),
			last_prefetched = greatest(old.last_prefetched, excluded.last_prefetched),
			last_required = greatest(old.last_required, excluded.last_required),
			outcome = case when old.outcome_hour > excluded.outcome_hour then old.outcome
				else coalesce(excluded.outcome, old.outcome) end,
			outcome_hour = greatest(old.outcome_hour, excluded.outcome_hour),
			varied_hour = greatest(old.varied_hour, excluded.varied_hour,
				case when old.outcome <> excluded.outcome then least(old.outcome_hour, excluded.outcome_hour) end)`

	insertTenantHours = `
		insert into keep.tenant_hours as old (tenant_id, environment_id, hour, run, evaluations, prefetches, reasons, clients)
		select t, e, @hour, @run, n, p, r, c
		from unnest(@tenants::text[], @environments::text[], @evaluations::bigint[], @prefetches::bigint[], @reasons::text[],
			@clients::text[]) as u (t, e, n, p, r, c)
		on conflict (tenant_id, hour, environment_id, run) do update set
			evaluations = excluded.evaluations + case when @adds then old.evaluations else 0 end,
			prefetches = excluded.prefetches + case when @adds then old.prefetches else 0 end,
			reasons = case when @adds then keep.add_counts(old.reasons, excluded.reasons) else excluded.reasons end,
			clients = case when @adds then keep.add_clients(old.clients, excluded.clients, @mostClients)
				else excluded.clients end
		where @adds or old.evaluations <= excluded.evaluations and old.prefetches <= excluded.prefetches`
)
