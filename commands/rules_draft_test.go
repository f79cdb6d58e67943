package commands

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"flagledger/events"
)

// A draft of rules is what SetRules and SetFallthrough would make of a flag, which stays as it is.
func TestARulesDraftIsWhatSavingWouldMake(t *testing.T) {
	t.Parallel()
	given := []events.Fact{split, ruled(storedRule("r1"), storedRule("r2"))}
	rules := []NewRule{sentRule(""), sentRule("r2", func(r *NewRule) { r.Name = "other" })}
	unset := SetFallthrough{FlagRef: theFlag, Environment: production, Unset: true}
	serving := SetFallthrough{FlagRef: theFlag, Environment: production, Serve: &NewServe{VariationID: new("v2")}}
	for name, c := range map[string]struct {
		draft RulesDraft
		saved []Command[Flag]
	}{
		"nothing":             {RulesDraft{}, nil},
		"rules":               {RulesDraft{Rules: rules}, []Command[Flag]{setting(rules...)}},
		"no rules":            {RulesDraft{Rules: []NewRule{}}, []Command[Flag]{setting()}},
		"a fallthrough":       {RulesDraft{Fallthrough: &serving}, []Command[Flag]{serving}},
		"another fallthrough": {RulesDraft{Rules: rules, Fallthrough: &unset}, []Command[Flag]{serving, setting(rules...), unset}},
	} {
		t.Run(name, func(t *testing.T) {
			c.draft.Environment = production
			before, saved := stateOf[Flag](given), given
			for _, cmd := range c.saved {
				facts, err := cmd.decide(stateOf[Flag](saved))
				if err != nil {
					t.Fatal(err)
				}
				saved = append(saved, facts...)
			}
			got, err := c.draft.Apply(before.Flag)
			if err != nil {
				t.Fatal(err)
			}
			want := stateOf[Flag](saved).Flag
			if diff := cmp.Diff(
				[]any{want.Rules[production.ID], want.FallthroughIn(production.ID)},
				[]any{got.Rules[production.ID], got.FallthroughIn(production.ID)}, cmpopts.EquateEmpty(),
			); diff != "" {
				t.Error("(-saved +draft)\n", diff)
			}
			if diff := cmp.Diff(stateOf[Flag](given), before); diff != "" {
				t.Error("the flag changed (-want +got)\n", diff)
			}
		})
	}
	_, err := RulesDraft{
		Environment: production,
		Rules:       []NewRule{sentRule("none")},
		Fallthrough: &SetFallthrough{},
	}.Apply(stateOf[Flag](given).Flag)
	refusal, ok := errors.AsType[*Error](err)
	if !ok || refusal.Fields["rules[0].id"] == "" || refusal.Fields["fallthrough"] == "" {
		t.Errorf("got %v", err)
	}
}
