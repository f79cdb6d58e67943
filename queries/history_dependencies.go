package queries

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Dependency is a flag or a segment that a flag depends on.
type Dependency struct {
	Type string // flag or segment
	Key  string
}

// span is a part of a tenant's trail: the numbers of its entries from the first until before the end.
type span struct{ first, end int64 }

// dependencySpans are the spans in which a flag depended on others, or in which a flag or segment referred to them: in
// order, without overlaps.
type dependencySpans map[Dependency][]span

// dependencies finds what the flags of a key have ever referred to, also through others, and when they did: flags that
// they required, and segments that their rules used, in any environment. It has the flag itself at all times.
func (q *Queries) dependencies(ctx context.Context, tenantID, key string) (dependencySpans, error) {
	flag := Dependency{"flag", key}
	all := dependencySpans{flag: {{0, math.MaxInt64}}}
	references := map[Dependency]dependencySpans{}
	for changed := []Dependency{flag}; len(changed) > 0; {
		if err := q.addReferences(ctx, tenantID, changed, references); err != nil {
			return nil, err
		}
		next := map[Dependency]bool{}
		for _, from := range changed {
			for to, spans := range references[from] {
				if ctx.Err() != nil {
					return nil, classify(ctx.Err())
				}
				if all.add(to, common(spans, all[from])) {
					next[to] = true
				}
			}
		}
		changed = slices.Collect(maps.Keys(next))
	}
	return all, nil
}

// entries returns the from clause of the entries a of tenant $1 in the spans, which ends in a condition, and its
// arguments from $4 on.
func (d dependencySpans) entries() (from string, args []any) {
	var types, keys []string
	var firsts, ends []int64
	for of, spans := range d {
		for _, s := range spans {
			types, keys = append(types, of.Type), append(keys, of.Key)
			firsts, ends = append(firsts, s.first), append(ends, s.end)
		}
	}
	return `from unnest($4::text[], $5::text[], $6::bigint[], $7::bigint[]) d (type, key, n, before)
		join read.audit a on a.tenant_id = $1 and a.resource_type = d.type and a.resource_id = d.key
			and a.n >= d.n and a.n < d.before` + actorJoins + ` where $2 <> '' and $3 <> ''`, []any{types, keys, firsts, ends}
}

// add adds spans of a dependency. It reports whether any part of them is new.
func (d dependencySpans) add(to Dependency, spans []span) (grown bool) {
	before := d[to]
	d[to] = joined(slices.Concat(before, spans))
	return !slices.Equal(before, d[to])
}

// common returns the parts that are in both lists of spans, which are in order and without overlaps.
func common(a, b []span) (parts []span) {
	for len(a) > 0 && len(b) > 0 {
		if part := (span{max(a[0].first, b[0].first), min(a[0].end, b[0].end)}); part.first < part.end {
			parts = append(parts, part)
		}
		if a[0].end < b[0].end {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return parts
}

// joined joins spans that overlap or meet.
func joined(spans []span) (all []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	for _, s := range spans {
		if last := len(all) - 1; last >= 0 && s.first <= all[last].end {
			all[last].end = max(all[last].end, s.end)
			continue
		}
		all = append(all, s)
	}
	return all
}

// referenceChange is an entry that changed what a flag or segment refers to, or that added or deleted an environment. A
// key stands in it once for each rule or prerequisite.
type referenceChange struct {
	Type, Key                                                string
	N                                                        int64
	Environment                                              string // empty for the rules of a segment
	Deleted                                                  bool
	AddedFlags, RemovedFlags, AddedSegments, RemovedSegments []string
}

// addReferences reads the references of those flags and segments that have none yet.
func (q *Queries) addReferences(
	ctx context.Context, tenantID string, of []Dependency, references map[Dependency]dependencySpans,
) error {
	var types, keys []string
	for _, d := range of {
		if references[d] == nil {
			references[d] = dependencySpans{}
			types, keys = append(types, d.Type), append(keys, d.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := q.db.Query(ctx, `
		select a.resource_type as type, a.resource_id as key, a.n, coalesce(a.environment, '') as environment,
			a.action like '%deleted' as deleted,
			`+texts(`$.prerequisites.to[*].flagKey`)+` as added_flags,
			`+texts(`$.prerequisites.from[*].flagKey`)+` as removed_flags,
			`+texts(`$.*.to.conditions[*] ? (@.op == "in_segment").values[*]`)+` as added_segments,
			`+texts(`$.*.from.conditions[*] ? (@.op == "in_segment").values[*]`)+` as removed_segments
		from (select a.* from unnest($2::text[], $3::text[]) d (type, key) join read.audit a on a.tenant_id = $1
				and a.resource_type = d.type and a.resource_id = d.key
			where a.action in ('flag.rules_changed', 'flag.prerequisites_changed', 'flag.deleted',
				'segment.rules_changed', 'segment.deleted')
			union all select a.* from read.audit a where a.tenant_id = $1 and a.resource_type = 'environment') a
		order by a.n`, tenantID, types, keys)
	if err != nil {
		return classify(err)
	}
	changes, err := pgx.CollectRows(rows, pgx.RowToStructByName[referenceChange])
	if err != nil {
		return classify(err)
	}
	open := map[string]map[Dependency]*openReferences{} // by environment
	gone := map[string]bool{}                           // environments
	for _, c := range changes {
		from, in := Dependency{c.Type, c.Key}, open[c.Environment]
		switch {
		case c.Type == "environment":
			gone[c.Environment] = c.Deleted
			for _, o := range in {
				o.end(c.N)
			}
		case c.Deleted:
			for _, in := range open {
				if o := in[from]; o != nil {
					o.end(c.N)
				}
			}
		case !gone[c.Environment]: // a change that raced the deletion has no effect
			if in == nil {
				in = map[Dependency]*openReferences{}
				open[c.Environment] = in
			}
			if in[from] == nil {
				in[from] = &openReferences{map[Dependency]int{}, map[Dependency]int64{}, references[from]}
			}
			in[from].apply(c)
		}
	}
	for _, in := range open {
		for _, o := range in {
			o.end(math.MaxInt64)
		}
	}
	for i := range keys {
		ended := references[Dependency{types[i], keys[i]}]
		for to, spans := range ended {
			ended[to] = joined(spans)
		}
	}
	return nil
}

// texts returns SQL for the texts that a path finds in the changes of an entry a.
func texts(path string) string {
	return `array(select t #>> '{}' from jsonb_path_query(a.changes::jsonb, '` + path + `') t)`
}

// openReferences counts what a flag or segment refers to in an environment while its changes are read.
type openReferences struct {
	counts map[Dependency]int
	since  map[Dependency]int64
	ended  dependencySpans // of all environments, neither in order nor joined
}

func (o *openReferences) apply(c referenceChange) {
	count := func(of string, keys []string, by int) {
		for _, key := range keys {
			d := Dependency{of, key}
			if o.counts[d] == 0 {
				o.since[d] = c.N
			}
			if o.counts[d] += by; o.counts[d] <= 0 {
				o.close(d, c.N)
			}
		}
	}
	count("flag", c.AddedFlags, 1) // first: what is in both goes on
	count("segment", c.AddedSegments, 1)
	count("flag", c.RemovedFlags, -1)
	count("segment", c.RemovedSegments, -1)
}

// end closes all references.
func (o *openReferences) end(n int64) {
	for d := range o.counts {
		o.close(d, n)
	}
}

func (o *openReferences) close(d Dependency, end int64) {
	o.ended[d] = append(o.ended[d], span{o.since[d], end})
	delete(o.counts, d)
}
