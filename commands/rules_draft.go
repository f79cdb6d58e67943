package commands

import (
	"flagledger/events"
	"flagledger/events/state"
)

// RulesDraft is a possible targeting of a flag in an environment. It is only evaluated, never stored.
type RulesDraft struct {
	Environment events.EnvironmentRef
	Rules       []NewRule       // nil leaves the current ones
	Fallthrough *SetFallthrough // nil leaves the current one
	Unusable    SegmentErrors
}

// Apply returns a flag with the draft's changes and the same version. The error names the fields that SetRules would
// refuse; fields of the fallthrough begin with fallthrough.
func (d RulesDraft) Apply(f state.Flag) (state.Flag, error) {
	f = f.Clone()
	check := ruleCheck{wrong: FieldErrors{}, flag: &f, unusable: d.Unusable}
	if d.Rules != nil {
		f.SetRules(d.Environment.ID, check.rules(d.Rules, f.Rules[d.Environment.ID]))
	}
	if d.Fallthrough != nil {
		f.SetFallthrough(d.Environment.ID, check.fallthroughServe("fallthrough", *d.Fallthrough))
	}
	return f, check.wrong.Err()
}

// SegmentRulesDraft has possible rules of a segment. They are only asked, never stored.
type SegmentRulesDraft struct {
	Rules    []NewRule
	Unusable SegmentErrors
}

// Apply returns a segment with the rules. The error names the fields that SetSegmentRules would refuse.
func (d SegmentRulesDraft) Apply(s state.Segment) (state.Segment, error) {
	s = s.Clone()
	check := ruleCheck{wrong: FieldErrors{}, unusable: d.Unusable}
	after := check.rules(d.Rules, s.Rules)
	check.segmentsUsed(after)
	s.SetRules(after)
	return s, check.wrong.Err()
}
