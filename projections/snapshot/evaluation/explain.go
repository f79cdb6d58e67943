package evaluation

import (
	"flagledger/events"
	"flagledger/events/state"
)

// Explanation says why a flag served what it did.
type Explanation struct {
	Steps []Step // in order; the last one decided
	Split *Split // nil if no split chose the variation
}

// Step is one question of an evaluation, and what came of it.
type Step struct {
	Kind       StepKind
	Outcome    string
	RuleID     string      // of a rule, as is the rest
	RuleName   string      // empty for a rule without a name
	Conditions []Condition // up to the first that did not match

	// Of a segment that a rule asked. RuleID is the segment's rule that decided.
	Segment        string
	SegmentVersion events.Revision // 0 for one that never was
	List           events.MemberList
}

// StepKind is what a step asks.
type StepKind string

// Kinds of steps in the order of evaluation.
const (
	StatusStep      StepKind = "status"      // active, inactive or archived
	EnvironmentStep StepKind = "environment" // enabled or disabled
	SegmentStep     StepKind = "segment"     // a SegmentOutcome; before the rule that asked
	RuleStep        StepKind = "rule"        // matched or not_matched
	FallthroughStep StepKind = "fallthrough" // served or not_set
	WeightsStep     StepKind = "weights"     // served or no_weights
	DefaultStep     StepKind = "default"     // served
)

// Condition is a condition that was evaluated.
type Condition struct {
	events.Condition
	Actual  any  // the attribute as Context holds it; nil for one that is absent
	Matched bool // after Negate
}

// Split is how a split chose a variation: see docs/bucketing.md.
type Split struct {
	Unit        string
	Attribute   string // whose value is Unit
	Salt        string
	Hash        uint32
	Bucket      uint64 // from 0 on and less than Total
	Total       uint64 // of the weights, in thousandths
	VariationID string
}

// Explain evaluates a state of a flag as Compile and Evaluate do, and explains the result. It returns their errors.
func Explain(s state.Flag, environmentID string, c *Context) (Result, Explanation, error) {
	f, err := CompileIn(s, environmentID)
	if err != nil {
		return Result{}, Explanation{}, err
	}
	result, err := f.Evaluate(environmentID, c)
	if err != nil {
		return Result{}, Explanation{}, err
	}
	x := Explanation{}
	served, salt := x.follow(f, s, environmentID, c)
	if served != nil {
		x.Split = served.explain(c, salt, result.VariationID)
	}
	return result, x, nil
}

// follow records the steps of a successful evaluation up to the one that decides. It returns the split of this step
// and its salt, nil if there is none.
func (x *Explanation) follow(f *Flag, s state.Flag, environmentID string, c *Context) (served *rollout, salt string) {
	note := func(kind StepKind, outcome string) { x.Steps = append(x.Steps, Step{Kind: kind, Outcome: outcome}) }
	if note(StatusStep, string(s.Status)); f.status != active {
		return nil, ""
	}
	e := f.environment(environmentID)
	if e == nil || !e.enabled {
		note(EnvironmentStep, "disabled")
		return nil, ""
	}
	note(EnvironmentStep, "enabled")
	left, targets := maxEffort, e.targeting
	if targets == nil {
		targets = &targeting{}
	}
	for i := range targets.rules {
		rule := s.Rules[environmentID][i]
		c.asked.explain = &x.Steps
		step, matched := explainRule(targets.rules[i].conditions, rule, c, &left)
		c.asked.explain = nil
		if x.Steps = append(x.Steps, step); matched {
			return targets.rules[i].serve.rollout, rule.Salt
		}
	}
	switch {
	case targets.fallthroughServe != nil:
		note(FallthroughStep, "served")
		return targets.fallthroughServe.rollout, s.Salt
	case f.split != nil:
		note(FallthroughStep, "not_set")
		note(WeightsStep, "served")
		return f.split, s.Salt
	default:
		note(FallthroughStep, "not_set")
		note(WeightsStep, "no_weights")
		note(DefaultStep, "served")
		return nil, ""
	}
}

func explainRule(compiled []condition, r events.Rule, c *Context, left *effort) (step Step, matched bool) {
	step = Step{Kind: RuleStep, Outcome: "matched", RuleID: r.ID, RuleName: r.Name}
	for i := range compiled {
		condition := &compiled[i]
		asked := Condition{Condition: r.Conditions[i], Matched: condition.holds(c, left)}
		switch {
		case condition.segments != nil:
		case !condition.attribute.targetingKey:
			asked.Actual = condition.attribute.of(c)
		case c.TargetingKey != "":
			asked.Actual = c.TargetingKey
		}
		if step.Conditions = append(step.Conditions, asked); !asked.Matched {
			step.Outcome = "not_matched"
			return step, false
		}
	}
	return step, true
}

// explain returns how the split chose a variation for a context that has a unit.
func (r *rollout) explain(c *Context, salt, variationID string) *Split {
	split := &Split{
		Unit:        c.TargetingKey,
		Attribute:   events.TargetingKey,
		Salt:        salt,
		Total:       r.total,
		VariationID: variationID,
	}
	if r.by != nil {
		split.Attribute = r.by.name
		switch value := r.by.of(c).(type) {
		case string:
			split.Unit = value
		case Number:
			split.Unit = value.String()
		}
	}
	h := newMurmur(salt).text(split.Unit)
	split.Hash, split.Bucket = h.sum(), h.bucket(r.total)
	return split
}
