package commands

import (
	"flagledger/events"
	"flagledger/events/state"
)

// RulesDraft is what a flag could serve in an environment: it is tried and never stored.
type RulesDraft struct {
	Environment events.EnvironmentRef
	Rules       []NewRule       // nil leaves those that the environment has
	Fallthrough *SetFallthrough // nil leaves the one that it has
}

// Apply returns a flag with what the draft changes. Its version stays. The error names what SetRules would be refused
// for, by the same fields, and what is wrong with the fallthrough under fallthrough.
func (d RulesDraft) Apply(f state.Flag) (state.Flag, error) {
	f = f.Clone()
	check := ruleCheck{wrong: fields{}, flag: &Flag{Flag: f}}
	if d.Rules != nil {
		f.Rules[d.Environment.ID] = check.rules(d.Rules, f.Rules[d.Environment.ID])
	}
	if d.Fallthrough != nil {
		delete(f.Fallthrough, d.Environment.ID)
		if serve := check.fallthroughServe("fallthrough", *d.Fallthrough); serve != nil {
			f.Fallthrough[d.Environment.ID] = *serve
		}
	}
	return f, check.wrong.err()
}
