package queries

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"flagledger/commands/keep/metering/counted"
)

// Point is the sum of an hour or a day of metrics. Prefetches of a tenant are calls.
type Point struct {
	Time        time.Time
	Evaluations int64
	Prefetches  int64
	Reasons     map[string]int64
	Outcomes    []OutcomeCount // of a flag alone, the most frequent first
}

// OutcomeCount is how often an outcome was served. One for all beyond maxOutcomes has no outcome.
type OutcomeCount struct {
	*Outcome
	Count int64
}

// Outcome is what a flag serves: a variation, or else a value. A variation with another value is another outcome; in a
// point it is one with the value that was served most.
type Outcome struct {
	VariationID   *string
	VariationName *string // today's, or the last of one that was deleted
	Value         json.RawMessage

	id   string // in keep.flag_outcomes
	size int    // of the value
}

// subject is what counts as one outcome of a point.
func (o *Outcome) subject() string {
	if o.VariationID != nil {
		return "variation " + *o.VariationID
	}
	return o.id
}

const maxOutcomes = counted.MaxOutcomes

// points adds uses up. They are added in the order of their time.
type points struct {
	period Period
	all    []Point
	known  map[string]*Outcome // by their ids, those of the current point at least

	current  int              // the point that uses are added to
	outcomes map[string]int64 // of it, by their ids
}

func newPoints(period Period, known map[string]*Outcome) *points {
	p := &points{period: period, all: make([]Point, period.Points()), known: known, outcomes: map[string]int64{}}
	for i := range p.all {
		p.all[i] = Point{Time: period.At(i), Reasons: map[string]int64{}}
	}
	return p
}

// use is how often flags were used in an environment and an hour or a day. Its texts are JSON.
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
	return addCounts(p.outcomes, u.Outcomes)
}

// addCounts adds the counts of a JSON object to those of the same names.
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

// finish makes the outcomes of the point that uses were added to, unless that was done, and returns all points.
func (p *points) finish() []Point {
	if len(p.outcomes) == 0 {
		return p.all
	}
	var rest int64
	bySubject := map[string]*OutcomeCount{}
	for _, id := range sortedByCount(p.outcomes) {
		n, known := p.outcomes[id], p.known[id]
		if known == nil { // the rest, or an outcome that nothing is known of
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

// sortedByCount are the names of counts, the highest first.
func sortedByCount(counts map[string]int64) []string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names,
		func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b)) })
	return names
}
