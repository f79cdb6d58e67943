package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flagledger/events"
)

// both is a flag in a snapshot and in the naive evaluator.
type both struct {
	snapshot *Snapshot
	naive    naive
	facts    events.Revision
	rules    map[string][]events.Rule // by environment id, as they are written
	applied  []events.Recorded
}

func newBoth() *both { return &both{snapshot: of()} }

// apply takes a fact as a store keeps it.
func (b *both) apply(fact events.Fact) {
	stored, err := events.Encode(events.Event{Fact: fact})
	if err != nil {
		panic(err)
	}
	event, err := events.Decode(stored)
	if err != nil {
		panic(err)
	}
	b.facts++
	switch fact := event.Fact.(type) {
	case events.FlagCreated:
		b.rules = map[string][]events.Rule{}
	case events.RulesChanged:
		b.rules[fact.Environment.ID] = events.ApplyRules(b.rules[fact.Environment.ID], fact,
			func(r events.Rule) string { return r.ID }, func(r events.Rule) events.Rule { return r })
	}
	e := events.Recorded{Event: event, Stream: events.FlagStream("t", "k"), Revision: b.facts, Name: stored.Name}
	b.applied = append(b.applied, e)
	b.snapshot.apply(events.Page{Events: []events.Recorded{e}}, slog.New(slog.DiscardHandler))
	b.naive.apply(int(b.facts), stored.Name, parse(stored.Data))
}

// flag is nil where there is none.
func (b *both) flag() *Flag {
	tenant, _ := b.snapshot.Tenant("t")
	flag, _ := tenant.Flag("k")
	return flag
}

type failer interface {
	Fatalf(format string, args ...any)
}

// check compares what both serve.
func (b *both) check(t failer, environment, key, sent string) (Result, error) {
	want, wantMissing := b.naive.evaluate(environment, key, parse([]byte(sent)))
	got, err := b.flag().Evaluate(environment, &Context{TargetingKey: key, Attributes: attributes(sent)})
	gotMissing := ""
	if missing, ok := errors.AsType[*NoUnitError](err); ok {
		gotMissing = missing.Attribute
	}
	if shown(got) != shown(want) || gotMissing != wantMissing {
		t.Fatalf("in %s, %q with %s is served\n%+v, %v, want\n%+v, missing %q", environment, key, sent, got, err, want,
			wantMissing)
	}
	return got, err
}

// checkUntil checks a property, again for some rounds until the examples had every case: a round is few examples.
func checkUntil(t *testing.T, complete func() bool, property func(*rapid.T)) {
	t.Helper()
	for round := 0; round == 0 || round < 20 && !complete() && !t.Failed(); round++ {
		rapid.Check(t, property)
	}
}

// cases counts what the examples of a property had, by the name of the case.
type cases map[string]int

// have reports whether there was each of some cases.
func (c cases) have(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return c[name] == 0 })
}

func TestEvaluationIsAsWritten(t *testing.T) {
	seen := cases{}
	wanted := []string{
		string(Archived), string(Off), string(RuleMatch), string(Fallthrough), "split: true", "split: false",
		"unit missing: true", "unit missing: false", "faults",
	}
	checkUntil(t, func() bool { return seen.have(wanted) }, func(t *rapid.T) {
		b := drawFlag(t, func(*both) {})
		seen["faults"] += b.naive.faults
		if int(b.snapshot.Faults()) != b.naive.faults || (b.flag() != nil) != b.naive.exists {
			t.Fatalf("%d faults, a flag %v, want %d and %v", b.snapshot.Faults(), b.flag(), b.naive.faults, b.naive.exists)
		}
		if !b.naive.exists {
			return
		}
		for range 20 {
			key, sent := sample(t, theKeys), drawAttributes(t, 3)
			for _, e := range theEnvironments {
				got, err := b.check(t, e.ID, key, sent)
				seen[string(got.Reason)]++
				seen[fmt.Sprint("split: ", got.Split)]++
				seen[fmt.Sprint("unit missing: ", err != nil)]++
			}
		}
		// Few draws end with an archived flag, and a run may have none.
		b.apply(events.FlagStatusChanged{To: events.ArchivedFlag})
		got, _ := b.check(t, theEnvironments[0].ID, "k", "{}")
		seen[string(got.Reason)]++
	})
	if !seen.have(wanted) {
		t.Errorf("the flags that were drawn have the cases %v, want %q", seen, wanted)
	}
}

// Readers hold flags without a lock: whatever comes after, one that they have found serves what it served.
func TestAFlagNeverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var contexts []*Context
		for range 10 {
			contexts = append(contexts, &Context{TargetingKey: sample(t, theKeys), Attributes: attributes(drawAttributes(t, 2))})
		}
		var flags []*Flag
		var served []string
		serves := func(f *Flag) string {
			var all strings.Builder
			for _, x := range contexts {
				for _, e := range theEnvironments {
					r, err := f.Evaluate(e.ID, x)
					fmt.Fprintf(&all, "%+v %v\n", r, err)
				}
			}
			return all.String()
		}
		drawFlag(t, func(b *both) {
			for i, f := range flags {
				if now := serves(f); now != served[i] {
					t.Fatalf("version %d served\n%s and now, after version %d,\n%s", f.version, served[i], b.facts, now)
				}
			}
			if f := b.flag(); f != nil {
				flags, served = append(flags, f), append(served, serves(f))
			}
		})
	})
}

// FuzzContext evaluates flags that have a rule of each operator for contexts of any kind.
func FuzzContext(f *testing.F) {
	operands := map[events.Operator]string{
		events.In:            `["pro",1.5,true,"a","b","c","d","e","f","g",1,2,3,4,5,6,7,8,9007199254740993]`,
		events.Contains:      `["b","xyz"]`,
		events.StartsWith:    `["ab"]`,
		events.EndsWith:      `["@acme.com","z"]`,
		events.Matches:       `["^a+$","(?i)x(y|z)*"]`,
		events.Greater:       `[5,1e400]`,
		events.GreaterEqual:  `[7]`,
		events.Less:          `[-1,-1.5]`,
		events.LessEqual:     `[0.5]`,
		events.Before:        `["2026-03-14T15:09:26Z"]`,
		events.After:         `["2026-03-14T15:09:26.5+02:00"]`,
		events.SemverEqual:   `["1.0.0"]`,
		events.SemverGreater: `["2.0.0-rc.1"]`,
		events.SemverAtLeast: `["1.5.0"]`,
		events.SemverLess:    `["0.1.0"]`,
		events.SemverAtMost:  `["0.2.0-a.1"]`,
		events.Exists:        `[]`,
	}
	var all []*both
	for op, values := range operands {
		for _, attribute := range []string{"a", "a.b", "targetingKey"} {
			b := newBoth()
			b.apply(three)
			b.apply(on)
			condition := events.Condition{Attribute: attribute, Op: op, Values: raw(values)}
			negated := condition
			negated.Negate = true
			b.apply(ruled(
				events.Rule{
					ID:         "r",
					Salt:       "r",
					Conditions: []events.Condition{condition},
					Serve:      rolled("a", half("a"), half("b")),
				},
				events.Rule{
					ID:         "n",
					Conditions: []events.Condition{negated, {Attribute: "c.d.e", Op: events.Exists}},
					Serve:      seven,
				},
			))
			b.apply(otherwise(rolled("targetingKey", half("b"), half("c"))))
			all = append(all, b)
		}
	}
	for _, sent := range []string{
		`{"a":"abc"}`, `{"a":["xyz",5.5,true,null,["a"]]}`, `{"a":{"b":1e401}}`, `{"a":-1.50}`, `{"a":"2026-03-14T15:09:26.25+01:00"}`, `{"a":"1.0.0-rc.1+b"}`, `{"a.b":"pro","c":{"d":{"e":0}}}`,
		`{"a":9007199254740993}`, `{"targetingKey":"x","a":{"a":[]}}`, `{"a":"\u0000\ud83d\ude00"}`, `{"a":1e999999999999}`, `{}`,
	} {
		f.Add("user-42", sent)
		f.Add("", sent)
	}
	huge := regexp.MustCompile(`[eE][+-]?\d{4}`)
	f.Fuzz(func(t *testing.T, key, sent string) {
		if !json.Valid([]byte(sent)) || sent[0] != '{' {
			return // not the attributes of a context
		}
		for _, b := range all {
			if huge.MatchString(sent) { // more than the naive evaluator can write down
				_, _ = b.flag().Evaluate(production.ID, &Context{TargetingKey: key, Attributes: attributes(sent)})
				continue
			}
			_, _ = b.check(t, production.ID, key, sent)
		}
	})
}
