package queries

import (
	"context"
	"encoding/json"
	"time"

	"flagledger/events"
	"flagledger/projections/usage"
)

// CleanupFlag is a flag that can be removed.
type CleanupFlag struct {
	Flag
	// SameOutcome reports whether all environments that evaluated the flag in the stale time, also on behalf of other
	// flags, served the same outcome.
	SameOutcome   bool
	VariationID   *string           // of that outcome; nil for a plain value
	VariationName *string           // the current name, or the last one
	Value         json.RawMessage   // of that outcome
	Clients       []usage.ClientUse // those that evaluated it in the last 30 days, most active first
	RequiredBy    []string          // keys of the flags that require it in a current environment
}

// Since returns when the flag was last evaluated, also on behalf of another one, prefetched or changed.
func (f CleanupFlag) Since() time.Time { return f.inputs().since() }

// joinDependents adds the keys of the flags of tenant $1 that require the flag of each row f in a current environment.
const joinDependents = ` left join (select p.value ->> 'flagKey' as key, array_agg(distinct o.key order by o.key) as keys
		from read.flags o cross join lateral json_each(o.prerequisites) e cross join lateral json_array_elements(e.value) p
		where o.tenant_id = $1 and o.prerequisites::text <> '{}'
			and exists (select from read.environments x where x.tenant_id = o.tenant_id and x.id = e.key) group by 1
	) dependents on dependents.key = f.key`

// Cleanup lists the unused and settled flags of a tenant, longest unused first. For changed see FlagList.
func (q *Queries) Cleanup(
	ctx context.Context, tenantID string, s Staleness, changed events.Position, page Page,
) (*List[CleanupFlag], error) {
	l := FlagList{
		TenantID:      tenantID,
		EnvironmentID: "none",
		Filter:        FlagFilter{Lifecycles: []Lifecycle{Unused, Settled}},
		Sort:          bySince,
		Stale:         s,
		Changed:       changed,
	}
	r := l.rows()
	keys, err := q.flagKeys(ctx, l, r)
	if err != nil {
		return nil, err
	}
	days, hours, err := q.cleanupPeriod(ctx, tenantID, s.Now)
	if err != nil {
		return nil, err
	}
	here := `x.tenant_id = f.tenant_id and x.flag_key = f.key and x.life = f.created_version and ` + usesHere("x")
	columns := flagColumns(
		`false`,
	) + usedColumns + `, o.outcome is not null as same_outcome, o.variation_id, coalesce(v.name, o.variation_name) as
		variation_name, o.value,
		(select coalesce(json_agg(json_build_object('ClientID', nullif(c.id, ''), 'Name', n.name, 'Evaluations',
			c.evaluations, 'LastSeen', to_timestamp(c.seen)) order by c.evaluations desc, c.id), '[]') from (
			select key as id, sum((value->>0)::bigint)::bigint as evaluations, max((value->>1)::bigint) as seen from (
				select x.clients from keep.flag_days x where ` + here + ` and x.day = any($4)
				union all select x.clients from keep.flag_hours x where ` + here + `
					and x.hour = any($5)) u, json_each(u.clients::json) group by key order by 2 desc, 1 limit $6) c
			left join ` + callerNames + ` n on n.id = c.id and n.tenant_id = f.tenant_id) as clients,
		coalesce(dependents.keys, '{}') as required_by`
	from := r.from + joinUse + joinDependents + `
		left join lateral (select min(x.outcome) as outcome from keep.flag_uses x where ` + here + `
			and greatest(x.last_evaluated, x.last_required) > $3 having count(distinct x.outcome) = 1) same on true
		left join keep.flag_outcomes o on o.tenant_id = f.tenant_id and o.flag_key = f.key and o.life = f.created_version
			and o.outcome = same.outcome
		left join read.flag_variations v on v.tenant_id = f.tenant_id and v.key = f.key and v.id = o.variation_id
		join unnest($7::text[]) with ordinality p (key, place) on p.key = f.key where f.tenant_id = $1 and $2 <> ''`
	return listByKeys[CleanupFlag](ctx, q.db, columns, from, "p.place", keys, page,
		func(f CleanupFlag) bool { return l.Filter.takes(f.inputs(), s) }, tenantID, l.EnvironmentID, s.start(), days, hours,
		usage.MaxClients, []string{})
}

// cleanupPeriod splits the days in which clients are counted into days already rolled up and the hours of all others.
func (q *Queries) cleanupPeriod(
	ctx context.Context, tenantID string, now time.Time,
) (days, hours []time.Time, err error) {
	const day = 24 * time.Hour
	today := now.UTC().Truncate(day)
	first := today.Add(-(usage.DaysOfHours - 1) * day)
	if days, err = usage.SummedDays(ctx, q.db, tenantID, first, today); err != nil {
		return nil, nil, classify(err)
	}
	done := map[time.Time]bool{}
	for _, d := range days {
		done[d.UTC()] = true
	}
	for hour := first; !hour.After(now); hour = hour.Add(time.Hour) {
		if !done[hour.Truncate(day)] {
			hours = append(hours, hour)
		}
	}
	return days, hours, nil
}
