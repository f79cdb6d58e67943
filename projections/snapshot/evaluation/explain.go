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

	Key     string            // of a segment that a rule asked, or of a flag that is required
	Version events.Revision   // of that; 0 for one that never was
	List    events.MemberList // of a segment, if it decided. RuleID may be the segment's rule that did

	Prerequisite *state.Prerequisite // what is demanded of a required flag; nil in other steps
	Steps        []Step              // of a required flag, where it was asked first
}

// StepKind is what a step asks.
type StepKind string

// Kinds of steps in the order of evaluation.
const (
	StatusStep      StepKind = "status"       // active, inactive or archived
	EnvironmentStep StepKind = "environment"  // enabled or disabled
	RequiredStep    StepKind = "prerequisite" // a PrerequisiteOutcome
	SegmentStep     StepKind = "segment"      // a SegmentOutcome; before the rule that asked, once
	RuleStep        StepKind = "rule"         // matched or not_matched
	FallthroughStep StepKind = "fallthrough"  // served or not_set
	WeightsStep     StepKind = "weights"      // served or no_weights
	DefaultStep     StepKind = "default"      // served
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
	x := explainer{environmentID: environmentID, context: c, left: maxEffort, room: maxExplained}
	steps, served, salt := x.follow(f, 1)
	explanation := Explanation{Steps: steps}
	if served != nil {
		explanation.Split = served.explain(c, salt, result.VariationID)
	}
	return result, explanation, nil
}

const (
	// maxExplained limits the bytes of rules in the steps of required flags, and of the steps of segments. Beyond it there
	// are no such steps.
	maxExplained = 1 << 20
	// segmentStepBytes is about what the step of a segment takes in JSON.
	segmentStepBytes = 256
)

// explainer follows a successful evaluation, whose context has the answers of the required flags.
type explainer struct {
	environmentID string
	context       *Context
	left          effort
	room          int             // what is left of maxExplained
	shown         map[string]bool // required flags with steps
}

// follow returns the steps of a flag up to the one that decides. chain counts the flags up to this one that require
// each other. It returns the split of the last step and its salt, nil if there is none.
func (x *explainer) follow(f *Flag, chain int) (steps []Step, served *rollout, salt string) {
	s := f.state
	note := func(kind StepKind, outcome string) { steps = append(steps, Step{Kind: kind, Outcome: outcome}) }
	if note(StatusStep, string(s.Status)); f.status != active {
		return steps, nil, ""
	}
	e := f.environment(x.environmentID)
	if e == nil || !e.enabled {
		note(EnvironmentStep, "disabled")
		return steps, nil, ""
	}
	note(EnvironmentStep, "enabled")
	for i := range e.required() {
		step := x.require(f, &e.required()[i], chain)
		if steps = append(steps, step); step.Outcome != string(Met) {
			return steps, nil, ""
		}
	}
	targets := e.targeting
	if targets == nil {
		targets = &targeting{}
	}
	for i := range targets.rules {
		rule := s.Rules[x.environmentID][i]
		x.context.asked.explain = x.segmentSteps(&steps)
		step, matched := explainRule(targets.rules[i].conditions, rule, x.context, &x.left)
		x.context.asked.explain = nil
		if steps = append(steps, step); matched {
			return steps, targets.rules[i].serve.rollout, rule.Salt
		}
	}
	switch {
	case targets.fallthroughServe != nil:
		note(FallthroughStep, "served")
		return steps, targets.fallthroughServe.rollout, s.Salt
	case f.split != nil:
		note(FallthroughStep, "not_set")
		note(WeightsStep, "served")
		return steps, f.split, s.Salt
	default:
		note(FallthroughStep, "not_set")
		note(WeightsStep, "no_weights")
		note(DefaultStep, "served")
		return steps, nil, ""
	}
}

// segmentSteps returns a function that adds the steps of the segments that a rule asks, each once.
func (x *explainer) segmentSteps(to *[]Step) func(Step) {
	type answer struct {
		key   string
		cycle bool // the same segment can be asked with and without closing a cycle
	}
	shown := map[answer]bool{}
	return func(step Step) {
		of := answer{step.Key, step.Outcome == string(InCycle)}
		if shown[of] || x.room < segmentStepBytes {
			return
		}
		shown[of] = true
		x.room -= segmentStepBytes
		*to = append(*to, step)
	}
}

// require returns the step of a flag that another one requires, with its own steps if it was not shown before.
func (x *explainer) require(f *Flag, p *prerequisite, chain int) Step {
	outcome, _ := f.require(p, x.environmentID, x.context, &x.left, chain) // as it was answered
	step := Step{Kind: RequiredStep, Outcome: string(outcome), Key: p.FlagKey, Prerequisite: p.Prerequisite}
	required := x.context.Dependencies.Find(p.FlagKey)
	if required == nil {
		return step
	}
	step.Version = required.version
	asked := required.state.Exists && (outcome == Met || outcome == Unmet)
	if !asked || required.stale || x.shown[p.FlagKey] {
		return step
	}
	if x.room < required.state.Bytes() {
		return step
	}
	x.room -= required.state.Bytes()
	if x.shown == nil {
		x.shown = map[string]bool{}
	}
	x.shown[p.FlagKey] = true
	step.Steps, _, _ = x.follow(required, chain+1)
	return step
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
