package commands

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
)

var development = events.EnvironmentRef{ID: "e2", Name: "development"}

// split is a number flag with the variations v1 and v2.
var split = created(func(f *events.FlagCreated) {
	f.Variations = []events.Variation{{ID: "v1", Name: "low", Value: raw("1")}, {ID: "v2", Name: "high", Value: raw("2")}}
})

func onPlan(values ...string) []events.Condition {
	c := events.Condition{Attribute: "plan", Op: events.In}
	for _, v := range values {
		c.Values = append(c.Values, raw(v))
	}
	return []events.Condition{c}
}

// storedRule returns a rule of an environment, with the salt salt-<id>.
func storedRule(id string) events.Rule {
	return events.Rule{
		ID:         id,
		Name:       "n",
		Salt:       "salt-" + id,
		Conditions: onPlan(`"pro"`),
		Serve:      events.Serve{VariationID: "v1"},
	}
}

// sentRule returns a storedRule as a caller sends it; one without id is new.
func sentRule(id string, change ...func(*NewRule)) NewRule {
	r := NewRule{
		NewID:      "new",
		Salt:       "new salt",
		Name:       "n",
		Conditions: onPlan(`"pro"`),
		Serve:      &NewServe{VariationID: new("v1")},
	}
	if id != "" {
		r.ID = &id
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// ruled sets the first rules in production.
func ruled(rules ...events.Rule) events.RulesChanged {
	return events.ChangeRules(production, nil, rules)
}

func orderOf(ids ...string) []string { return append([]string{}, ids...) }

func setting(rules ...NewRule) SetRules {
	return SetRules{FlagRef: theFlag, Environment: production, Rules: append([]NewRule{}, rules...)}
}

func TestSetRules(t *testing.T) {
	r1, r2 := storedRule("r1"), storedRule("r2")
	given := []events.Fact{split, ruled(r1, r2)}
	t.Run("the first ones", func(t *testing.T) {
		fresh := events.Rule{
			ID:         "new",
			Name:       "n",
			Salt:       "new salt",
			Conditions: onPlan(`"pro"`),
			Serve:      events.Serve{VariationID: "v1"},
		}
		when(
			t,
			[]events.Fact{split},
			setting(sentRule("")),
		).then(events.RulesChanged{Environment: production, Added: []events.Rule{fresh}, Order: &events.Change[[]string]{From: orderOf(), To: orderOf("new")}})
	})
	t.Run("that are there already", func(t *testing.T) {
		when(t, given, setting(sentRule("r1"), sentRule("r2"))).then()
		when(t, []events.Fact{split}, setting()).then()
		when(t, append(given, events.ChangeRules(production, []events.Rule{r1, r2}, nil)), setting()).then()
	})
	t.Run("none", func(t *testing.T) {
		when(
			t,
			given,
			setting(),
		).then(events.RulesChanged{Environment: production, Removed: []events.Rule{r1, r2}, Order: &events.Change[[]string]{From: orderOf("r1", "r2"), To: orderOf()}})
	})
	t.Run("that move keep their salt", func(t *testing.T) {
		when(t, given, setting(sentRule("r2"), sentRule("r1"))).
			then(events.RulesChanged{Environment: production, Order: &events.Change[[]string]{From: orderOf("r1", "r2"), To: orderOf("r2", "r1")}})
	})
	t.Run("that change keep their salt", func(t *testing.T) {
		changed := r2
		changed.Name, changed.Conditions, changed.Serve = "", []events.Condition{}, events.Serve{Value: raw("7.0")}
		sent := sentRule("r2", func(r *NewRule) {
			r.Name, r.Conditions, r.Serve = "", []events.Condition{}, &NewServe{Value: raw(" 7.0 ")}
		})
		changes := []events.Change[events.Rule]{{From: r2, To: changed}}
		when(t, given, setting(sentRule("r1"), sent)).then(events.RulesChanged{Environment: production, Changed: changes})
		when(t, given, setting(sent)).then(events.RulesChanged{
			Environment: production,
			Removed:     []events.Rule{r1},
			Changed:     changes,
			Order:       &events.Change[[]string]{From: orderOf("r1", "r2"), To: orderOf("r2")},
		})
	})
	t.Run("that were there once are new", func(t *testing.T) {
		when(t, append(given, events.ChangeRules(production, []events.Rule{r1, r2}, []events.Rule{r1})),
			setting(sentRule("r1"), sentRule("r2"))).
			refused(Invalid, "rules[1].id")
	})
	t.Run("of another environment", func(t *testing.T) {
		elsewhere := setting(sentRule("r1"))
		elsewhere.Environment = development
		when(t, given, elsewhere).refused(Invalid, "rules[0].id")
		elsewhere.Rules[0].ID = nil
		fresh := r1
		fresh.ID, fresh.Salt = "new", "new salt"
		when(
			t,
			given,
			elsewhere,
		).then(events.RulesChanged{Environment: development, Added: []events.Rule{fresh}, Order: &events.Change[[]string]{From: orderOf(), To: orderOf("new")}})
	})
	t.Run("with one id twice", func(t *testing.T) {
		when(t, given, setting(sentRule("r1"), sentRule("r2"), sentRule("r1"))).refused(Invalid, "rules[2].id")
		when(t, given, setting(sentRule("none"), sentRule("none"))).refused(Invalid, "rules[0].id", "rules[1].id")
	})
	t.Run("whatever the flag's status", func(t *testing.T) {
		archived := append(given, events.FlagStatusChanged{From: events.ActiveFlag, To: events.ArchivedFlag})
		when(
			t,
			archived,
			setting(),
		).then(events.RulesChanged{Environment: production, Removed: []events.Rule{r1, r2}, Order: &events.Change[[]string]{From: orderOf("r1", "r2"), To: orderOf()}})
	})
	t.Run("that are not sent", func(t *testing.T) {
		when(t, given, SetRules{FlagRef: theFlag, Environment: production}).refused(Invalid, "rules")
	})
	t.Run("of no flag", func(t *testing.T) { when(t, nil, setting(sentRule(""))).refused(NotFound) })
	t.Run("with the fallthrough, which stays", func(t *testing.T) {
		served := append(given, events.FallthroughChanged{Environment: production, To: &events.Serve{VariationID: "v1"}})
		with := func(f SetFallthrough) SetRules {
			set := setting(sentRule("r1"), sentRule("r2"))
			set.Fallthrough = &f
			return set
		}
		when(t, served, with(SetFallthrough{Serve: &NewServe{VariationID: new("v1")}})).then()
		when(t, given, with(SetFallthrough{Unset: true})).then()
		when(t, given, with(SetFallthrough{Serve: &NewServe{VariationID: new("v1")}})).refused(Invalid, "fallthrough")
		when(t, served, with(SetFallthrough{Unset: true})).refused(Invalid, "fallthrough")
		when(
			t,
			served,
			with(SetFallthrough{Serve: &NewServe{VariationID: new("v3")}}),
		).refused(Invalid, "fallthrough", "fallthrough.variationId")
	})
	t.Run("so large that they could not be changed again", func(t *testing.T) {
		large := raw(`"` + strings.Repeat("x", maxServed/2) + `"`)
		fits := setting(sentRule("", func(r *NewRule) { r.Conditions[0].Values = []json.RawMessage{large} }))
		if err := when(t, []events.Fact{split}, fits).err; err != nil {
			t.Fatal(err)
		}
		fits.Rules = append(fits.Rules, fits.Rules[0])
		fits.Rules[1].NewID = "newer"
		when(t, []events.Fact{split}, fits).refused(Invalid, "rules")
	})
}

// The largest accepted lists differ in every rule and in their order: the change must fit in one event with the longest
// reason.
func TestRulesThatFitOnceCanAlwaysBeChanged(t *testing.T) {
	list := func(fill string) []events.Rule {
		rules := make([]events.Rule, MaxRules)
		for i := range rules {
			id := fmt.Sprintf("0198c5a1-9c51-7f3d-8b26-%012d", i)
			rules[i] = events.Rule{
				ID:         id,
				Salt:       strings.Repeat("s", 26),
				Conditions: onPlan(`""`),
				Serve:      events.Serve{VariationID: "v1"},
			}
		}
		stored, err := events.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		rules[0].Conditions = onPlan(`"` + strings.Repeat(fill, (maxServed-len(stored)-20*len(rules))/len(rules)) + `"`)
		for i := range rules {
			rules[i].Conditions = rules[0].Conditions
		}
		rules[0].Name = "x"
		if stored, err = events.Marshal(rules); err != nil {
			t.Fatal(err)
		}
		rules[0].Name += strings.Repeat("x", maxServed-len(stored))
		return rules
	}
	before, after := list("a"), list("b")
	slices.Reverse(after)
	for _, c := range []events.RulesChanged{
		events.ChangeRules(production, before, after), events.ChangeRules(production, nil, after), events.ChangeRules(production, before, nil),
	} {
		_, err := events.Encode(events.Event{ID: uuid.New(), Fact: c, Metadata: events.Metadata{
			Time:          time.Now(),
			Actor:         events.Actor{Kind: events.ClientActor, ID: uuid.NewString()},
			RequestID:     uuid.NewString(),
			CorrelationID: strings.Repeat("c", 200),
			Reason:        strings.Repeat("\u2028", 500), // three bytes that JSON writes as six
		}})
		if err != nil {
			t.Errorf("%d changed, %d added, %d removed: %v", len(c.Changed), len(c.Added), len(c.Removed), err)
		}
	}
}

// After any SetRules, the facts lead to the decided list.
func TestSetRulesLeavesTheListThatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := []events.Fact{split}
		for step := range rapid.IntRange(1, 5).Draw(t, "steps") {
			flag := stateOf[state.Flag](given)
			var sent []NewRule
			var want []string
			kept := rapid.Permutation(flag.Rules[production.ID]).Draw(t, "order")
			for i := range rapid.IntRange(0, 4).Draw(t, "rules") {
				rule := sentRule("")
				rule.NewID = fmt.Sprintf("rule %d of step %d", i, step)
				if len(kept) > 0 && rapid.Bool().Draw(t, "keep") {
					rule.ID, kept = &kept[0].ID, kept[1:]
				}
				rule.Name = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
				sent, want = append(sent, rule), append(want, fmt.Sprint(cmp.Or(deref(rule.ID), rule.NewID), " ", rule.Name))
			}
			facts, err := setting(sent...).Decide(flag)
			if err != nil {
				t.Fatal(err)
			}
			given = append(given, facts...)
			var got []string
			for _, r := range stateOf[state.Flag](given).Rules[production.ID] {
				got = append(got, r.ID+" "+r.Name)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("the rules are %q, want %q", got, want)
			}
		}
	})
}

// Accepted rules change nothing when they are sent again, even after they were stored and read.
func TestRulesSentAgainChangeNothing(t *testing.T) {
	for _, serve := range []*NewServe{
		{VariationID: new("v1")}, {Value: raw(`1.50`)}, {Rollout: []events.Share{{VariationID: "v1", Weight: 33_333}, {VariationID: "v2", Weight: 66_667}}, BucketBy: new("a.b")},
	} {
		sent := setting(sentRule("", func(r *NewRule) {
			r.Conditions = []events.Condition{
				{
					Attribute: "a",
					Op:        events.In,
					Values:    []json.RawMessage{raw(` "<\u00e9>"`), raw("1.0")},
					Negate:    true,
				},
				{Attribute: "b", Op: events.Exists, Values: []json.RawMessage{}},
			}
			r.Serve = serve
		}))
		decided := when(t, []events.Fact{split}, sent)
		if decided.err != nil {
			t.Fatal(decided.err)
		}
		stored, err := events.Encode(events.Event{Fact: decided.facts[0]})
		if err != nil {
			t.Fatal(err)
		}
		read, err := events.Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		sent.Rules[0].ID, sent.Rules[0].NewID, sent.Rules[0].Salt = new("new"), "another", "another salt"
		when(t, []events.Fact{split, read.Fact}, sent).then()
	}
}
