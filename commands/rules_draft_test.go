package commands

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"flagledger/events"
	"flagledger/events/state"
)

// A draft returns the rules that SetRules and SetFallthrough would store, without changing the flag.
func TestARulesDraftIsWhatSavingWouldMake(t *testing.T) {
	t.Parallel()
	given := []events.Fact{split, ruled(storedRule("r1"), storedRule("r2"))}
	rules := []NewRule{sentRule(""), sentRule("r2", func(r *NewRule) { r.Name = "other" })}
	unset := SetFallthrough{FlagRef: theFlag, Environment: production, Unset: true}
	serving := SetFallthrough{FlagRef: theFlag, Environment: production, Serve: &NewServe{VariationID: new("v2")}}
	for name, c := range map[string]struct {
		draft RulesDraft
		saved []Command[state.Flag]
	}{
		"nothing":             {RulesDraft{}, nil},
		"rules":               {RulesDraft{Rules: rules}, []Command[state.Flag]{setting(rules...)}},
		"no rules":            {RulesDraft{Rules: []NewRule{}}, []Command[state.Flag]{setting()}},
		"a fallthrough":       {RulesDraft{Fallthrough: &serving}, []Command[state.Flag]{serving}},
		"another fallthrough": {RulesDraft{Rules: rules, Fallthrough: &unset}, []Command[state.Flag]{serving, setting(rules...), unset}},
	} {
		t.Run(name, func(t *testing.T) {
			c.draft.Environment = production
			before, saved := stateOf[state.Flag](given), given
			for _, cmd := range c.saved {
				facts, err := cmd.Decide(stateOf[state.Flag](saved))
				if err != nil {
					t.Fatal(err)
				}
				saved = append(saved, facts...)
			}
			got, err := c.draft.Apply(before)
			if err != nil {
				t.Fatal(err)
			}
			want := stateOf[state.Flag](saved)
			if diff := cmp.Diff(
				[]any{want.Rules[production.ID], want.FallthroughIn(production.ID)},
				[]any{got.Rules[production.ID], got.FallthroughIn(production.ID)}, cmpopts.EquateEmpty(),
			); diff != "" {
				t.Error("(-saved +draft)\n", diff)
			}
			if diff := cmp.Diff(stateOf[state.Flag](given), before); diff != "" {
				t.Error("the flag changed (-want +got)\n", diff)
			}
		})
	}
	_, err := RulesDraft{
		Environment: production,
		Rules:       []NewRule{sentRule("none")},
		Fallthrough: &SetFallthrough{},
	}.Apply(stateOf[state.Flag](given))
	refusal, ok := errors.AsType[*Error](err)
	if !ok || refusal.Fields["rules[0].id"] == "" || refusal.Fields["fallthrough"] == "" {
		t.Errorf("got %v", err)
	}
}
