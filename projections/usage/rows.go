package usage

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"flagledger/projections/usage/counted"
)

// columns returns the uses in the order of the tables' keys.
func (p *page) columns() *columns {
	slices.SortFunc(p.uses, inOrder)
	c := &columns{hour: p.hour, hash: sha256.New(), added: map[outcomeKey]bool{}}
	for i := range p.uses {
		c.add(&p.uses[i])
	}
	return c
}

// inOrder compares uses as the keys of the tables do. All nodes write rows in this order, so that none waits for
// another that waits for it.
func inOrder(a, b counted.Use) int {
	return cmp.Or(strings.Compare(a.TenantID, b.TenantID), strings.Compare(a.FlagKey, b.FlagKey),
		cmp.Compare(a.Life, b.Life), strings.Compare(a.EnvironmentID, b.EnvironmentID))
}

// columns are the uses of a page as columns of the tables.
type columns struct {
	hour  time.Time
	hash  hash.Hash // that outcomes are named by
	added map[outcomeKey]bool

	flags, tenants rows
	last           lastUses
	outcomes       outcomes
}

// rows are those of keep.flag_hours or keep.tenant_hours.
type rows struct {
	tenants, keys, environments, reasons, outcomes, clients []string
	lives, evaluations, prefetches                          []int64
}

// lastUses are the further columns of keep.flag_uses.
type lastUses struct {
	evaluated, prefetched []*time.Time
	outcome               []*string
	varied                []bool
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
	life          uint64
	name          string
}

func (c *columns) add(u *counted.Use) {
	n := countsOf(u, c.outcomeOf)
	r := &c.tenants
	if u.FlagKey != "" {
		r = &c.flags
		c.addLast(u, &n)
		c.addOutcomes(u)
	}
	r.add(u.TenantID, u.FlagKey, int64(u.Life), u.EnvironmentID, &n)
}

func (r *rows) add(tenantID, key string, life int64, environmentID string, c *counts) {
	r.tenants = append(r.tenants, tenantID)
	r.keys = append(r.keys, key)
	r.lives = append(r.lives, life)
	r.environments = append(r.environments, environmentID)
	r.evaluations, r.prefetches = append(r.evaluations, c.evaluations), append(r.prefetches, c.prefetches)
	r.reasons = append(r.reasons, string(c.reasons.appendJSON(nil, false)))
	r.outcomes = append(r.outcomes, string(c.outcomes.appendJSON(nil, false)))
	r.clients = append(r.clients, string(c.clients.appendJSON(nil, true)))
}

func (c *columns) addLast(u *counted.Use, n *counts) {
	orNull := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	c.last.evaluated = append(c.last.evaluated, orNull(u.Evaluated))
	c.last.prefetched = append(c.last.prefetched, orNull(u.Prefetched))
	var outcome *string
	var most int64
	for _, o := range n.outcomes {
		if o.n > most && o.name != counted.RestOutcome {
			outcome, most = &o.name, o.n
		}
	}
	c.last.outcome, c.last.varied = append(c.last.outcome, outcome), append(c.last.varied, len(n.outcomes) > 1)
}

func (c *columns) addOutcomes(u *counted.Use) {
	o := &c.outcomes
	for i := range u.Served {
		s := &u.Served[i]
		if !s.New || s.Rest {
			continue
		}
		of := outcomeKey{u.TenantID, u.FlagKey, u.Life, c.outcomeOf(s)}
		if c.added[of] { // with another reason, or in another environment
			continue
		}
		c.added[of] = true
		var variation, name *string
		if s.VariationID != "" {
			variation, name = &s.VariationID, &s.VariationName
		}
		o.tenants = append(o.tenants, u.TenantID)
		o.keys = append(o.keys, u.FlagKey)
		o.lives = append(o.lives, int64(u.Life))
		o.outcomes = append(o.outcomes, of.name)
		o.variations = append(o.variations, variation)
		o.names = append(o.names, name)
		o.values = append(o.values, string(s.Value))
	}
}

// outcomeOf names what was served: a variation with its value, since hours before that changed keep what was served
// then, or a value alone. No two of a flag get the same name.
func (c *columns) outcomeOf(s *counted.Served) string {
	if s.Rest {
		return counted.RestOutcome
	}
	c.hash.Reset()
	_, _ = c.hash.Write(append([]byte(s.VariationID), 0))
	_, _ = c.hash.Write(s.Value)
	return hex.EncodeToString(c.hash.Sum(nil)[:10])
}

// tenantIDs are those of all rows, which come in their order.
func (c *columns) tenantIDs() []string {
	ids := slices.Concat(c.flags.tenants, c.tenants.tenants)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (c *columns) batch(run uuid.UUID, now time.Time) *pgx.Batch {
	b := &pgx.Batch{}
	// rows are found by their keys, however few there were when Postgres last counted them
	b.Queue(`select set_config('enable_seqscan', 'off', true)`)
	day, today := c.hour.Truncate(aDay), now.UTC().Truncate(aDay)
	// the running one too: whether it is over for others this clock cannot tell
	if !day.Before(today.AddDate(0, 0, -counted.DaysOfHours)) {
		b.Queue(`select pg_advisory_xact_lock_shared($1::int, $2::int)`, dayLockClass, dayNumber(day))
		// it is to be added up again
		b.Queue(`delete from keep.use_days where tenant_id = any($1) and day = $2`, c.tenantIDs(), day)
	}
	if o := &c.outcomes; len(o.keys) > 0 {
		b.Queue(
			`insert into keep.flag_outcomes as old (tenant_id, flag_key, life, outcome, variation_id, variation_name, value)
			select t, k, l, o, v, n, j::json from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[],
				$6::text[], $7::text[]) as u (t, k, l, o, v, n, j)
			where (select f.variation_name is not distinct from n and f.value::text = j from keep.flag_outcomes f
				where f.tenant_id = t and f.flag_key = k and f.life = l and f.outcome = o) is not true -- new or changed: each hour brings the known ones again. A subquery looks each up by its key; a join may be planned otherwise
			order by t, k, l, o -- as all nodes do, so that none waits for another that waits for it
			on conflict (tenant_id, flag_key, life, outcome) do update
				set variation_name = excluded.variation_name, value = excluded.value
				where old.variation_name is distinct from excluded.variation_name or old.value::text <> excluded.value::text`,
			o.tenants,
			o.keys,
			o.lives,
			o.outcomes,
			o.variations,
			o.names,
			o.values,
		)
	}
	if r := &c.flags; len(r.keys) > 0 {
		b.Queue(
			`insert into keep.flag_hours as old (tenant_id, flag_key, life, environment_id, hour, run, evaluations, prefetches,
				reasons, outcomes, clients)
			select t, k, l, e, $1, $2, n, p, r, o, c
			from unnest($3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::text[], $10::text[],
				$11::text[]) as u (t, k, l, e, n, p, r, o, c)
			on conflict (tenant_id, hour, flag_key, life, environment_id, run) do update set
				evaluations = excluded.evaluations, prefetches = excluded.prefetches, reasons = excluded.reasons, outcomes =
					excluded.outcomes, clients = excluded.clients
			where old.evaluations <= excluded.evaluations and old.prefetches <= excluded.prefetches`,
			c.hour,
			run,
			r.tenants,
			r.keys,
			r.lives,
			r.environments,
			r.evaluations,
			r.prefetches,
			r.reasons,
			r.outcomes,
			r.clients,
		)
		b.Queue(
			`insert into keep.flag_uses as old (tenant_id, flag_key, life, environment_id, last_evaluated, last_prefetched,
				outcome, outcome_hour, varied_hour)
			select t, k, l, e, v, p, o, case when o is not null then $1::timestamptz end, case when m then $1::timestamptz end
			from unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::text[],
				$9::bool[]) as u (t, k, l, e, v, p, o, m)
			on conflict (tenant_id, flag_key, life, environment_id) do update set
				last_evaluated = greatest(old.last_evaluated, excluded.last_evaluated),
				last_prefetched = greatest(old.last_prefetched, excluded.last_prefetched),
				outcome = case when old.outcome_hour > excluded.outcome_hour then old.outcome
					else coalesce(excluded.outcome, old.outcome) end,
				outcome_hour = greatest(old.outcome_hour, excluded.outcome_hour),
				varied_hour = greatest(old.varied_hour, excluded.varied_hour,
					case when old.outcome <> excluded.outcome then least(old.outcome_hour, excluded.outcome_hour) end)`,
			c.hour,
			r.tenants,
			r.keys,
			r.lives,
			r.environments,
			c.last.evaluated,
			c.last.prefetched,
			c.last.outcome,
			c.last.varied,
		)
	}
	if r := &c.tenants; len(r.tenants) > 0 {
		b.Queue(
			`insert into keep.tenant_hours as old (tenant_id, environment_id, hour, run, evaluations, prefetches, reasons,
				clients)
			select t, e, $1, $2, n, p, r, c
			from unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[]) as u (t, e, n, p, r, c)
			on conflict (tenant_id, hour, environment_id, run) do update set
				evaluations = excluded.evaluations, prefetches = excluded.prefetches, reasons = excluded.reasons, clients =
					excluded.clients
			where old.evaluations <= excluded.evaluations and old.prefetches <= excluded.prefetches`,
			c.hour,
			run,
			r.tenants,
			r.environments,
			r.evaluations,
			r.prefetches,
			r.reasons,
			r.clients,
		)
	}
	return b
}
