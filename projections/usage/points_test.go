package usage

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is added up, nothing is lost, and what a point shows is what was served most.
func TestPointsAddUp(t *testing.T) {
	known := map[string]*Outcome{}
	for i := range 24 { // of which 12 are values of four variations
		o := &Outcome{id: fmt.Sprint("o", i)}
		if i%2 == 0 {
			o.VariationID = new(fmt.Sprint("v", i%8))
		}
		known[o.id] = o
	}
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprint("o", i)) // of some nothing is known
	}
	names = append(names, RestOutcome.ID)
	from := time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		hours := rapid.IntRange(1, 5).Draw(t, "hours")
		step := rapid.SampledFrom([]time.Duration{Hourly, Daily}).Draw(t, "step")
		p := newPoints(Period{step, from, from.Add(time.Duration(hours) * step)}, known)
		served := make([]map[string]int64, hours) // by point, by variation, value or the rest
		reasons := make([]int64, hours)
		text := func(v any) []byte {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		for at := from; at.Before(p.period.To); at = at.Add(Hourly) {
			i := p.period.PointOf(at)
			for range rapid.IntRange(0, 3).Draw(t, "uses") {
				outcomes := rapid.MapOf(rapid.SampledFrom(names), rapid.Int64Range(0, 9)).Draw(t, "outcomes")
				n := rapid.Int64Range(0, 9).Draw(t, "reason")
				if err := p.add(use{at, 2, 1, text(map[string]int64{"OFF": n, "RULE_MATCH": 1}), text(outcomes)}); err != nil {
					t.Fatal(err)
				}
				reasons[i] += n
				if served[i] == nil {
					served[i] = map[string]int64{}
				}
				served[i][""]++ // uses
				for id, n := range outcomes {
					subject := RestOutcome.ID
					if known[id] != nil {
						subject = known[id].subject()
					}
					served[i][subject] += n
				}
			}
		}
		all := p.finish()
		for i, point := range all {
			uses := served[i][""]
			if !point.Time.Equal(from.Add(time.Duration(i)*step)) || point.Evaluations != 2*uses || point.Prefetches != uses ||
				point.Reasons["OFF"] != reasons[i] ||
				point.Reasons["RULE_MATCH"] != uses {
				t.Fatalf("point %d is %+v of %d uses with %d", i, point, uses, reasons[i])
			}
			var most, shown, least int64
			for subject, n := range served[i] {
				if subject != "" {
					most += n
				}
			}
			least = most
			for j, o := range point.Outcomes {
				shown += o.Count
				switch {
				case o.Outcome == nil && j != len(point.Outcomes)-1 || o.Count == 0:
					t.Fatalf("outcome %d is %+v", j, o)
				case o.Outcome == nil:
				case j >= maxOutcomes || o.Count > least || o.Count != served[i][o.subject()]:
					t.Fatalf("outcome %d is %s with %d, after one with %d: there were %v", j, o.subject(), o.Count, least, served[i])
				default:
					least = o.Count
					delete(served[i], o.subject())
				}
			}
			if shown != most {
				t.Fatalf("%d outcomes are shown of %d", shown, most)
			}
			for subject, n := range served[i] {
				if subject != "" && subject != RestOutcome.ID && n > 0 && (n > least || len(point.Outcomes) <= maxOutcomes) {
					t.Fatalf("%s with %d is not shown, and another with %d is", subject, n, least)
				}
			}
		}
	})
}

// The clients that evaluated most are named, and when they last did.
func TestClientsAddUp(t *testing.T) {
	all := clients{}
	for range 2 {
		for i := range 60 {
			if err := all.add(fmt.Appendf(nil, `{"c%02d":[%d,%d],"":[1,%d],"idle":[0,5]}`, i, i, 1000-i, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := all.mostActive()
	if len(list) != MaxClients || list[0].ClientID != nil || list[0].Evaluations != 120 ||
		list[0].LastSeen.Unix() != 59 {
		t.Fatalf("%d clients, the first %+v", len(list), list[0])
	}
	if c := list[1]; *c.ClientID != "c59" || c.Evaluations != 118 || c.LastSeen.Unix() != 941 {
		t.Errorf("the second is %+v", c)
	}
}
