package queries

import (
	"context"
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

// reference is a dependency that a flag or segment referred to in a span.
type reference struct {
	to Dependency
	span
}

// dependencySpans are the spans in which a flag depended on others, without overlaps. It has the flag itself at all
// times.
type dependencySpans map[Dependency][]span

// dependencies finds what the flags of a key have ever referred to, also through others, and when they did: flags that
// they required, and segments that their rules used, in any environment.
func (q *Queries) dependencies(ctx context.Context, tenantID, key string) (dependencySpans, error) {
	flag := Dependency{"flag", key}
	all := dependencySpans{flag: {{0, math.MaxInt64}}}
	references := map[Dependency][]reference{}
	for changed := []Dependency{flag}; len(changed) > 0; {
		if err := q.addReferences(ctx, tenantID, changed, references); err != nil {
			return nil, err
		}
		var next []Dependency
		for _, from := range changed {
			for _, r := range references[from] {
				if all.add(r, all[from]) && !slices.Contains(next, r.to) {
					next = append(next, r.to)
				}
			}
		}
		changed = next
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

// add adds the parts of a reference's span in which there was what refers. It reports whether any of them is new.
func (d dependencySpans) add(r reference, exists []span) (grown bool) {
	for _, e := range exists {
		part := span{max(r.first, e.first), min(r.end, e.end)}
		covers := func(s span) bool { return s.first <= part.first && part.end <= s.end }
		if part.first >= part.end || slices.ContainsFunc(d[r.to], covers) {
			continue
		}
		d[r.to] = joined(append(slices.Clone(d[r.to]), part))
		grown = true
	}
	return grown
}

// joined joins spans that overlap or meet.
func joined(spans []span) (all []span) {
	slices.SortFunc(spans, func(a, b span) int { return int(a.first - b.first) })
	for _, s := range spans {
		if last := len(all) - 1; last >= 0 && s.first <= all[last].end {
			all[last].end = max(all[last].end, s.end)
			continue
		}
		all = append(all, s)
	}
	return all
}

// referenceChange is an entry that changed what a flag or segment refers to. A key stands in it once for each rule or
// prerequisite.
type referenceChange struct {
	Type, Key                                                string
	N                                                        int64
	Deleted                                                  bool
	AddedFlags, RemovedFlags, AddedSegments, RemovedSegments []string
}

// addReferences reads the references of those flags and segments that have none yet.
func (q *Queries) addReferences(
	ctx context.Context, tenantID string, of []Dependency, references map[Dependency][]reference,
) error {
	var types, keys []string
	for _, d := range of {
		if _, known := references[d]; !known {
			references[d] = nil
			types, keys = append(types, d.Type), append(keys, d.Key)
		}
	}
	rows, err := q.db.Query(ctx, `
		select a.resource_type as type, a.resource_id as key, a.n, a.action like '%.deleted' as deleted,
			`+texts(`$.prerequisites.to[*].flagKey`)+` as added_flags,
			`+texts(`$.prerequisites.from[*].flagKey`)+` as removed_flags,
			`+texts(`$.*.to.conditions[*] ? (@.op == "in_segment").values[*]`)+` as added_segments,
			`+texts(`$.*.from.conditions[*] ? (@.op == "in_segment").values[*]`)+` as removed_segments
		from unnest($2::text[], $3::text[]) d (type, key) join read.audit a on a.tenant_id = $1
			and a.resource_type = d.type and a.resource_id = d.key
		where a.action in ('flag.rules_changed', 'flag.prerequisites_changed', 'flag.deleted', 'segment.rules_changed',
			'segment.deleted')
		order by a.n`, tenantID, types, keys)
	if err != nil {
		return classify(err)
	}
	open := map[Dependency]*openReferences{}
	changes, err := pgx.CollectRows(rows, pgx.RowToStructByName[referenceChange])
	if err != nil {
		return classify(err)
	}
	for _, c := range changes {
		from := Dependency{c.Type, c.Key}
		if open[from] == nil {
			open[from] = &openReferences{counts: map[Dependency]int{}, since: map[Dependency]int64{}}
		}
		open[from].apply(c)
	}
	for from, o := range open {
		references[from] = o.end(math.MaxInt64)
	}
	return nil
}

// texts returns SQL for the texts that a path finds in the changes of an entry a.
func texts(path string) string {
	return `array(select t #>> '{}' from jsonb_path_query(a.changes::jsonb, '` + path + `') t)`
}

// openReferences counts what a flag or segment refers to while its changes are read.
type openReferences struct {
	counts map[Dependency]int
	since  map[Dependency]int64
	ended  []reference
}

func (o *openReferences) apply(c referenceChange) {
	if c.Deleted {
		o.end(c.N)
		return
	}
	count := func(of string, keys []string, by int) {
		for _, key := range keys {
			d := Dependency{of, key}
			if o.counts[d] == 0 {
				o.since[d] = c.N
			}
			o.counts[d] += by
		}
	}
	count("flag", c.AddedFlags, 1) // first: what is in both goes on
	count("segment", c.AddedSegments, 1)
	count("flag", c.RemovedFlags, -1)
	count("segment", c.RemovedSegments, -1)
	for d, n := range o.counts {
		if n <= 0 {
			o.close(d, c.N)
		}
	}
}

// end closes all references, and returns those that ever were.
func (o *openReferences) end(n int64) []reference {
	for d := range o.counts {
		o.close(d, n)
	}
	return o.ended
}

func (o *openReferences) close(d Dependency, end int64) {
	o.ended = append(o.ended, reference{d, span{o.since[d], end}})
	delete(o.counts, d)
}
