package evaluation

import (
	"fmt"
	"testing"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation/evaluationtest"
)

var (
	production = evaluationtest.Production
	on         = events.FlagEnabled{Environment: production}
	three      = made(events.NumberFlag, "0", choice("a", "1", 0), choice("b", "2", 0), choice("c", "3", 0))
	toA        = events.Serve{VariationID: "a"}
	toB        = events.Serve{VariationID: "b"}
	seven      = events.Serve{Value: []byte("7")}
)

var (
	made      = evaluationtest.Made
	choice    = evaluationtest.Choice
	ruled     = evaluationtest.Ruled
	rulesIn   = evaluationtest.RulesIn
	when      = evaluationtest.When
	otherwise = evaluationtest.Otherwise
	rolled    = evaluationtest.Rolled
	half      = evaluationtest.Half
	raw       = evaluationtest.Raw

	theEnvironments = evaluationtest.Environments
)

func attributes(text string) map[string]any { return evaluationtest.Attributes(text, ParseNumber) }

// follower compiles a flag after each of its facts, as the snapshot does.
type follower struct {
	environments []events.EnvironmentRef
	state        state.Flag
	flag         *Flag // nil if there is none
	facts        events.Revision
}

func newFollower() *follower { return &follower{environments: theEnvironments} }

func (f *follower) apply(fact events.Fact) error {
	return f.take(evaluationtest.Stored(f.facts+1, fact))
}

func (f *follower) take(e events.Recorded) error {
	f.facts = e.Revision
	f.state = f.state.Clone()
	f.state.Apply(e)
	if !f.state.Exists {
		f.flag = nil
		return nil
	}
	s := f.state
	next, err := Compile(&s, f.environments, f.flag)
	f.flag = &next
	return err
}

// flagOf returns the flag after facts that all compile.
func flagOf(t testing.TB, facts ...events.Fact) *Flag {
	t.Helper()
	return flagIn(t, theEnvironments, facts...)
}

// flagIn is flagOf for some environments.
func flagIn(t testing.TB, environments []events.EnvironmentRef, facts ...events.Fact) *Flag {
	t.Helper()
	f := &follower{environments: environments}
	for _, fact := range facts {
		if err := f.apply(fact); err != nil {
			t.Fatal(err)
		}
	}
	return f.flag
}

// withCondition returns an enabled flag with one rule of one condition.
func withCondition(t *testing.T, c events.Condition) *Flag {
	t.Helper()
	return flagOf(t, three, on, ruled(events.Rule{ID: "r", Serve: toA, Conditions: []events.Condition{c}}))
}

// shown is the part of a result that callers see.
func shown(r Result) string {
	r.Variation = nil
	return fmt.Sprintf("%+v", r)
}
