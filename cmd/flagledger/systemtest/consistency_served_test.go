package systemtest

import (
	"encoding/json"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/murmur3"
	"pgregory.net/rapid"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
)

// checkEvaluation compares what a flag serves with its state and the rules of evaluation, and counts the matches of
// rules.
func (v views) checkEvaluation(t rapid.TB, key string, f state.Flag) (matches int64) {
	tenant, ok := v.live.Tenant("t")
	if !ok {
		t.Fatal("the snapshot does not have the tenant")
	}
	compiled, ok := tenant.Flag(key)
	if ok != f.Exists {
		t.Fatalf("the snapshot has the flag: %v; it exists: %v", ok, f.Exists)
	}
	if !ok {
		return 0
	}
	for _, e := range environments {
		for _, unit := range []string{"", "u1", "u2", "u3", "größer"} {
			want, wantErr := evaluated(f, e.ID, unit)
			got, err := compiled.Evaluate(
				e.ID,
				&evaluation.Context{
					TargetingKey: unit,
					Attributes:   map[string]any{"plan": "pro", "n": evaluation.ParseNumber([]byte("5"))},
				},
			)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(evaluation.Result{}, "Variation")); diff != "" ||
				cmp.Diff(wantErr, err) != "" {
				t.Fatalf("in %s, %q is served %v, want %v (-want +got):\n%s", e.Name, unit, err, wantErr, diff)
			}
			if got.RuleID != "" {
				matches++
			}
		}
	}
	return matches
}

// evaluated returns the evaluation of a flag computed from its state.
func evaluated(f state.Flag, environmentID, unit string) (evaluation.Result, error) {
	r := evaluation.Result{Value: f.DefaultValue, Version: f.Version, ChangedAt: f.UpdatedAt}
	switch {
	case f.Status == events.ArchivedFlag:
		r.Reason = evaluation.Archived
		return r, nil
	case f.Status == events.InactiveFlag || !f.Enabled.Has(environmentID):
		r.Reason = evaluation.Off
		return r, nil
	}
	r.Enabled, r.Reason, r.HasRules = true, evaluation.Fallthrough, len(f.Rules[environmentID]) > 0
	for _, rule := range f.Rules[environmentID] {
		if !slices.ContainsFunc(rule.Conditions, func(c events.Condition) bool { return !holds(c, unit) }) {
			r.Reason, r.RuleID = evaluation.RuleMatch, rule.ID
			return served(r, f, rule.Serve, rule.Salt, unit)
		}
	}
	if serve := f.FallthroughIn(environmentID); serve != nil {
		return served(r, f, *serve, f.Salt, unit)
	}
	var byWeight events.Serve
	total := events.Weight(0)
	for _, w := range f.Variations {
		byWeight.Rollout = append(byWeight.Rollout, events.Share{VariationID: w.ID, Weight: w.Weight})
		total += w.Weight
	}
	switch {
	case total > 0:
		return served(r, f, byWeight, f.Salt, unit)
	case f.Type == events.BooleanFlag:
		r.Value = json.RawMessage(`true`)
	}
	return r, nil
}

// served returns what a rule or a fallthrough serves to a person with the plan "pro".
func served(r evaluation.Result, f state.Flag, s events.Serve, salt, unit string) (evaluation.Result, error) {
	if s.Value != nil {
		r.Value = s.Value
		return r, nil
	}
	id := s.VariationID
	if s.Rollout != nil {
		r.Split = true
		attribute := "targetingKey"
		if s.BucketBy != "" {
			attribute = s.BucketBy
			unit = map[string]string{"plan": "pro"}[s.BucketBy]
		}
		if unit == "" {
			return evaluation.Result{}, &evaluation.NoUnitError{Attribute: attribute}
		}
		total, upTo := uint64(0), uint64(0)
		for _, share := range s.Rollout {
			total += uint64(share.Weight)
		}
		bucket := uint64(murmur3.StringSum32(salt+":"+unit)) * total >> 32
		for _, share := range s.Rollout {
			if upTo += uint64(share.Weight); bucket < upTo {
				id = share.VariationID
				break
			}
		}
	}
	for _, v := range f.Variations {
		if v.ID == id {
			r.Value, r.VariationID, r.VariationName = v.Value, v.ID, v.Name
		}
	}
	return r, nil
}

// someConditions are conditions with a known result for a person with the plan "pro" and n 5.
var someConditions = []struct {
	events.Condition
	holds func(unit string) bool
}{
	{
		events.Condition{Attribute: "plan", Op: events.In, Values: values(`"free"`, `"\u0070ro"`)},
		func(string) bool { return true },
	},
	{
		events.Condition{Attribute: "plan", Op: events.In, Values: values(`"pro"`), Negate: true},
		func(string) bool { return false },
	},
	{events.Condition{Attribute: "n", Op: events.Greater, Values: values(`6`, `4.0`)}, func(string) bool { return true }},
	{events.Condition{Attribute: "plan.x", Op: events.Exists}, func(string) bool { return false }},
	{
		events.Condition{Attribute: "targetingKey", Op: events.In, Values: values(`"u1"`, `"größer"`)},
		func(unit string) bool { return unit == "u1" || unit == "größer" },
	},
	{
		events.Condition{Attribute: "targetingKey", Op: events.Matches, Values: values(`"^u[2-9]$"`)},
		func(unit string) bool { return unit == "u2" || unit == "u3" },
	},
	{
		events.Condition{Attribute: "targetingKey", Op: events.Exists, Negate: true},
		func(unit string) bool { return unit == "" },
	},
}

func values(list ...string) (values []json.RawMessage) {
	for _, value := range list {
		values = append(values, json.RawMessage(value))
	}
	return values
}

func holds(c events.Condition, unit string) bool {
	for _, known := range someConditions {
		if cmp.Equal(known.Condition, c) {
			return known.holds(unit)
		}
	}
	panic("a condition that was not drawn")
}
