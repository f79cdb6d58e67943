package usage

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Point sums an hour or a day of metrics. The prefetches of a tenant are calls.
type Point struct {
	Time        time.Time
	Evaluations int64
	Prefetches  int64
	Reported    int64 // how many of the evaluations were reported
	Required    int64 // evaluations on behalf of other flags, which are not among the evaluations
	Reasons     map[string]int64
	Outcomes    []OutcomeCount // most frequent first; only for a single flag
}

// OutcomeCount holds how often an outcome was served. The sum of those beyond maxOutcomes has no outcome.
type OutcomeCount struct {
	*Outcome
	Count int64
}

// Outcome is a served variation, or a plain value. A point merges a variation's outcomes and shows the value served
// most.
type Outcome struct {
	VariationID   *string
	VariationName *string // the current name, or the last one of a deleted variation
	Value         json.RawMessage

	id   string // in keep.flag_outcomes
	size int    // of the value
}

// subject returns the identity of an outcome within a point.
func (o *Outcome) subject() string {
	if o.VariationID != nil {
		return "variation " + *o.VariationID
	}
	return o.id
}

// points sums usage rows, which are added in the order of their times.
type points struct {
	period Period
	all    []Point
	known  map[string]*Outcome // by id, at least those of the current point

	current  int              // the point being added to
	outcomes map[string]int64 // of the current point by id
}

func newPoints(period Period, known map[string]*Outcome) *points {
	p := &points{period: period, all: make([]Point, period.Points()), known: known, outcomes: map[string]int64{}}
	for i := range p.all {
		p.all[i] = Point{Time: period.At(i), Reasons: map[string]int64{}}
	}
	return p
}

// use is the usage in an environment in an hour or a day. Its texts are JSON.
type use struct {
	At          time.Time
	Evaluations int64
	Prefetches  int64
	Reasons     []byte // {"RULE_MATCH": 3}
	Outcomes    []byte // {"<outcome's id>": 3}, nil for a tenant
}

func (p *points) add(u use) error {
	if i := p.period.PointOf(u.At); i != p.current {
		p.finish()
		p.current = i
	}
	point := &p.all[p.current]
	point.Evaluations += u.Evaluations
	point.Prefetches += u.Prefetches
	if err := addCounts(point.Reasons, u.Reasons); err != nil {
		return err
	}
	point.Reported, point.Required = point.Reasons[reportedReason], point.Reasons[requiredReason]
	return addCounts(p.outcomes, u.Outcomes)
}

// addCounts adds the counts of a JSON object to a map.
func addCounts(to map[string]int64, object []byte) error {
	if len(object) <= len("{}") {
		return nil
	}
	var counts map[string]int64
	if err := json.Unmarshal(object, &counts); err != nil {
		return err
	}
	for name, n := range counts {
		if n > 0 {
			to[name] += n
		}
	}
	return nil
}

// finish completes the outcomes of the current point and returns all points.
func (p *points) finish() []Point {
	if len(p.outcomes) == 0 {
		return p.all
	}
	var rest int64
	bySubject := map[string]*OutcomeCount{}
	for _, id := range sortedByCount(p.outcomes) {
		n, known := p.outcomes[id], p.known[id]
		if known == nil { // the rest, or an unknown outcome
			rest += n
			continue
		}
		subject := known.subject()
		if bySubject[subject] == nil {
			bySubject[subject] = &OutcomeCount{Outcome: known}
		}
		bySubject[subject].Count += n
	}
	clear(p.outcomes)
	var list []OutcomeCount
	for _, c := range bySubject {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b OutcomeCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.subject(), b.subject()))
	})
	for _, c := range list[min(len(list), maxOutcomes):] {
		rest += c.Count
	}
	list = list[:min(len(list), maxOutcomes)]
	if rest > 0 {
		list = append(list, OutcomeCount{Count: rest})
	}
	p.all[p.current].Outcomes = list
	return p.all
}

// sortedByCount returns the keys of counts, highest count first.
func sortedByCount(counts map[string]int64) []string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names,
		func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b)) })
	return names
}
