package evaluation

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation/evaluationtest"
)

// both holds a flag compiled after each fact, and the naive evaluator's.
type both struct {
	follower
	naive naive
	err   error // of the last fact
}

func newBoth() *both { return &both{follower: *newFollower()} }

func (b *both) apply(facts ...events.Fact) {
	for _, fact := range facts {
		b.take(evaluationtest.Stored(b.facts+1, fact))
	}
}

func (b *both) take(e events.Recorded) {
	stored, err := events.Encode(e.Event)
	if err != nil {
		panic(err)
	}
	b.err = b.follower.take(e)
	version := b.naive.version
	b.naive.apply(stored.Name, parse(stored.Data))
	if b.naive.version = version; b.err == nil {
		b.naive.version = int(e.Revision)
	}
}

type failer interface {
	Fatalf(format string, args ...any)
}

// check compares what both serve.
func (b *both) check(t failer, environment, key, sent string) (Result, error) {
	want, wantMissing := b.naive.evaluate(environment, key, parse([]byte(sent)))
	got, err := b.flag.Evaluate(environment, &Context{TargetingKey: key, Attributes: attributes(sent)})
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

// cases counts the cases in a property's examples by name.
type cases map[string]int

// have reports whether each of these cases occurred.
func (c cases) have(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return c[name] == 0 })
}

func TestEvaluationIsAsWritten(t *testing.T) {
	seen := cases{}
	wanted := []string{
		string(Archived), string(Off), string(RuleMatch), string(Fallthrough), "split: true", "split: false",
		"unit missing: true", "unit missing: false", "faulty: true",
	}
	evaluationtest.CheckUntil(t, func() bool { return seen.have(wanted) }, func(t *rapid.T) {
		b := newBoth()
		evaluationtest.DrawFlag(t, func(e events.Recorded, _ *state.Flag) {
			b.take(e)
			targets := false
			switch e.Fact.(type) {
			case events.RulesChanged, events.FallthroughChanged:
				targets = true
			}
			if b.err == nil && b.naive.newlyBroken || b.err != nil && !b.naive.newlyBroken && !targets {
				t.Fatalf("of %s, the error is %v, newly broken is %t", e.Name, b.err, b.naive.newlyBroken)
			}
			seen[fmt.Sprint("faulty: ", b.err != nil)]++
		})
		if (b.flag != nil) != b.naive.exists {
			t.Fatalf("the flag is %v, it exists: %t", b.flag, b.naive.exists)
		}
		if !b.naive.exists {
			return
		}
		for range 20 {
			key, sent := evaluationtest.Sample(t, evaluationtest.Keys), evaluationtest.DrawAttributes(t, 3)
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

// Readers use flags without a lock: later changes must not affect a flag that a reader has found.
func TestAFlagNeverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var contexts []*Context
		for range 10 {
			contexts = append(contexts, &Context{TargetingKey: evaluationtest.Sample(t, evaluationtest.Keys), Attributes: attributes(evaluationtest.DrawAttributes(t, 2))})
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
		follower := newFollower()
		evaluationtest.DrawFlag(t, func(e events.Recorded, _ *state.Flag) {
			_ = follower.take(e)
			for i, f := range flags {
				if now := serves(f); now != served[i] {
					t.Fatalf("version %d served\n%s and now, after version %d,\n%s", f.version, served[i], e.Revision, now)
				}
			}
			if f := follower.flag; f != nil {
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
			if huge.MatchString(sent) { // too large for the naive evaluator
				_, _ = b.flag.Evaluate(production.ID, &Context{TargetingKey: key, Attributes: attributes(sent)})
				continue
			}
			_, _ = b.check(t, production.ID, key, sent)
		}
	})
}

// naiveFlag is a flag of a naive evaluation of prerequisites: what it demands by key, in order.
type naiveFlag struct {
	exists, on bool
	demands    []naiveDemand
}

type naiveDemand struct {
	key   string
	off   bool
	value bool // that the other flag must serve
	since int
}

type naiveFlags map[string]*naiveFlag

// serves reports whether a flag is on, and then serves true.
func (n naiveFlags) serves(key string) bool {
	f := n[key]
	if f == nil || !f.exists || !f.on {
		return false
	}
	for _, d := range f.demands {
		if n.leads(d.key, key, key, d, map[string]bool{}) {
			return false
		}
		on := n.serves(d.key)
		if on == d.off || !d.off && !d.value {
			return false
		}
	}
	return true
}

// leads reports whether demands that are older than another one lead from one flag to another.
func (n naiveFlags) leads(from, to, of string, than naiveDemand, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] || n[from] == nil || !n[from].exists {
		return false
	}
	seen[from] = true
	for _, d := range n[from].demands {
		order := d.since - than.since
		if order == 0 {
			order = strings.Compare(from+" "+d.key, of+" "+than.key)
		}
		if order < 0 && n.leads(d.key, to, of, than, seen) {
			return true
		}
	}
	return false
}

// Whatever flags come to require each other, they are evaluated as written, and a graph that followed each change is
// that of the flags at the end.
func TestPrerequisitesAreAsWritten(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		naive, states, d := naiveFlags{}, map[string]*state.Flag{}, NewDependencies(nil)
		revision := events.Revision(0)
		for second := range rapid.IntRange(5, 40).Draw(t, "changes") {
			key := rapid.SampledFrom(keys).Draw(t, "key")
			s, n := states[key], naive[key]
			if s == nil {
				s, n = &state.Flag{}, &naiveFlag{}
			}
			next := s.Clone()
			apply := func(fact events.Fact) {
				revision++
				next.Apply(events.Recorded{Event: events.Event{Fact: fact}, Revision: revision, At: at(second)})
			}
			switch change := rapid.IntRange(0, 5).Draw(t, "change"); {
			case !next.Exists:
				created := boolean
				created.Key = key
				apply(created)
				*n = naiveFlag{exists: true}
			case change == 0:
				apply(events.FlagDeleted{})
				*n = naiveFlag{}
			case change < 3:
				if n.on = !n.on; n.on {
					apply(on)
				} else {
					apply(events.FlagDisabled{Environment: production})
				}
			default:
				var list []events.Prerequisite
				var demands []naiveDemand
				for _, other := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 2, rapid.ID).Draw(t, "others") {
					demand := naiveDemand{other, rapid.Bool().Draw(t, "off"), rapid.Bool().Draw(t, "value"), second}
					for _, before := range n.demands {
						if before.key == other {
							demand.since = before.since
						}
					}
					p := events.Prerequisite{FlagKey: other, Off: demand.off}
					if !demand.off {
						p.Serves = []events.ServedValue{{Value: json.RawMessage(fmt.Sprint(demand.value))}}
					}
					list, demands = append(list, p), append(demands, demand)
				}
				apply(events.PrerequisitesChanged{Environment: production, To: list})
				n.demands = demands
			}
			states[key], naive[key] = &next, n
			if f, err := Compile(&next, theEnvironments, nil); err != nil {
				t.Fatal(err)
			} else if next.Exists {
				d = d.WithRequired(&f)
			} else {
				d = d.WithRequired(Deleted(&next))
			}
		}
		if fresh := NewDependencies(nil, d.Required()...); fmt.Sprint(plainGraphs(fresh)) != fmt.Sprint(plainGraphs(d)) {
			t.Fatalf("the graphs are %v, want %v", plainGraphs(d), plainGraphs(fresh))
		}
		for _, key := range keys {
			f := d.Find(key)
			if f == nil || !f.state.Exists {
				continue
			}
			r, err := f.Evaluate(production.ID, &Context{Dependencies: d})
			if want := naive.serves(key); err != nil || r.Enabled != want {
				t.Fatalf("%s is on: %v, %v; want %v", key, r.Enabled, err, want)
			}
		}
	})
}

// plainGraphs returns the graphs in a form that can be compared.
func plainGraphs(d *Dependencies) (list []string) {
	for id, g := range d.graphs {
		list = append(list, fmt.Sprint(id, *g))
	}
	slices.Sort(list)
	return list
}
