package evaluation

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation/evaluationtest"
)

// A flag compiled fact by fact serves the same as one compiled from its last state. An environment may end on the way.
func TestCompilingStepByStepMakesTheSameFlag(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		f := newFollower()
		ends := rapid.IntRange(0, 20).Draw(t, "an environment ends after")
		evaluationtest.DrawFlag(t, func(e events.Recorded, s *state.Flag) {
			if int(e.Revision) > ends {
				f.environments = theEnvironments[:1]
			}
			_ = f.take(e)
			if f.flag == nil {
				return
			}
			atOnce, err := Compile(s, f.environments, nil)
			if err != nil || f.flag.version != s.Version {
				return // it serves what it did before
			}
			x := &Context{
				TargetingKey: evaluationtest.Sample(t, evaluationtest.Keys),
				Attributes:   attributes(evaluationtest.DrawAttributes(t, 2)),
			}
			for _, e := range f.environments {
				got, gotErr := f.flag.Evaluate(e.ID, x)
				want, wantErr := atOnce.Evaluate(e.ID, x)
				if shown(got) != shown(want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
					t.Fatalf("in %s, it serves %+v, %v, compiled at once %+v, %v", e.ID, got, gotErr, want, wantErr)
				}
				compared++
			}
		})
	})
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// An unknown operator of a newer release stops updates in one environment of one flag, and nothing else.
func TestARuleThatCannotBeCompiledStopsOneEnvironment(t *testing.T) {
	development := theEnvironments[1]
	f := newFollower()
	good := []events.Rule{when("r", "pro", toA)}
	newer := events.Rule{ID: "n", Serve: toB, Conditions: []events.Condition{{Attribute: "plan", Op: "newer"}}}
	bad := append([]events.Rule{newer}, good...)
	apply := func(fact events.Fact, faulty bool) {
		t.Helper()
		if err := f.apply(fact); (err != nil) != faulty {
			t.Errorf("after %s, the error is %v", fact.StoredName(), err)
		}
	}
	serves := func(environment events.EnvironmentRef, want string) {
		t.Helper()
		r, err := f.flag.Evaluate(environment.ID, &Context{Attributes: map[string]any{"plan": "pro"}})
		if got := fmt.Sprint(r.Reason, " ", string(r.Value)); err != nil || got != want {
			t.Errorf("in %s it serves %s, %v, want %s", environment.Name, got, err, want)
		}
	}
	apply(three, false)
	apply(on, false)
	apply(events.FlagEnabled{Environment: development}, false)
	apply(ruled(good...), false)
	apply(rulesIn(development, good...), false)

	timed := func() bool {
		f.flag.state.UpdatedAt = time.Unix(1, 0)
		r, err := f.flag.Evaluate(production.ID, &Context{})
		return err == nil && !r.ChangedAt.IsZero()
	}
	if !timed() {
		t.Error("an answer has no time of its version")
	}
	version := f.flag.Version()
	apply(events.ChangeRules(development, good, bad), true)
	if f.flag.Version() != version {
		t.Errorf("its version is %d, want %d", f.flag.Version(), version)
	}
	serves(development, "RULE_MATCH 1")
	if timed() {
		t.Error("an answer beside older rules has the time of its version")
	}

	apply(events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{To: []byte("5")}}, false)
	apply(events.VariationUpdated{ID: "a", Value: &events.Change[json.RawMessage]{To: []byte("9")}}, false)
	apply(events.VariationAdded{Variation: choice("d", "4", 0)}, false)
	serves(production, "RULE_MATCH 9")
	serves(development, "RULE_MATCH 1")
	apply(events.FlagDisabled{Environment: production}, false)
	serves(production, "OFF 5")
	if f.flag.Version() != f.facts {
		t.Errorf("its version is %d, want %d", f.flag.Version(), f.facts)
	}
	apply(events.FlagDisabled{Environment: development}, false)
	serves(development, "OFF 5")
	apply(events.FlagEnabled{Environment: development}, false)
	serves(development, "RULE_MATCH 1")

	apply(events.ChangeRules(development, bad, []events.Rule{when("n", "pro", toB), good[0]}), false)
	serves(development, "RULE_MATCH 2")
}

// A variation may be removed while rules of a deleted environment serve it.
func TestADeletedEnvironmentsRulesAreNotCompiled(t *testing.T) {
	f := newFollower()
	for _, fact := range []events.Fact{
		three, on, rulesIn(theEnvironments[1], when("r", "pro", toA)), ruled(when("r", "pro", toB)),
	} {
		if err := f.apply(fact); err != nil {
			t.Fatal(err)
		}
	}
	f.environments = theEnvironments[:1]
	for _, fact := range []events.Fact{events.VariationRemoved{Variation: choice("a", "1", 0)}, on} {
		if err := f.apply(fact); err != nil {
			t.Errorf("after %s, the error is %v", fact.StoredName(), err)
		}
	}
	r, err := f.flag.Evaluate(production.ID, &Context{Attributes: map[string]any{"plan": "pro"}})
	if err != nil || r.VariationID != "b" || r.Version != f.facts {
		t.Errorf("it serves %+v, %v", r, err)
	}
}

// Compilation of rules is slow, so rules that a fact does not change are reused.
func TestConditionsAreCompiledOnce(t *testing.T) {
	list := []events.Rule{when("r", "pro", toA), when("q", "free", toB)}
	f := newFollower()
	apply := func(fact events.Fact) {
		if err := f.apply(fact); err != nil {
			t.Fatal(err)
		}
	}
	targets := func() *targeting { return f.flag.environment(production.ID).targeting }
	for _, fact := range []events.Fact{three, on, ruled(list...)} {
		apply(fact)
	}
	all := targets()
	for _, fact := range []events.Fact{
		events.FlagStatusChanged{To: events.InactiveFlag},
		events.FlagEnabled{Environment: theEnvironments[1]},
		events.FlagUpdated{DefaultValue: &events.Change[json.RawMessage]{To: []byte("5")}},
		rulesIn(theEnvironments[1], when("s", "pro", toA)),
	} {
		if apply(fact); targets() != all {
			t.Errorf("after %s, all is compiled again", fact.StoredName())
		}
	}
	conditions := &all.rules[0].conditions[0]
	for _, fact := range []events.Fact{
		events.VariationUpdated{ID: "a", Value: &events.Change[json.RawMessage]{To: []byte("9")}},
		events.ChangeRules(production, list, []events.Rule{list[0], when("q", "team", toB)}),
		otherwise(toB),
	} {
		if apply(fact); &targets().rules[0].conditions[0] != conditions {
			t.Errorf("after %s, the conditions of a rule that stays are compiled again", fact.StoredName())
		}
	}
}
