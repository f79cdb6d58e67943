package evaluation

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"

	"flagledger/events/state"
)

// PrerequisiteOutcome says whether a prerequisite is met, and why not.
type PrerequisiteOutcome string

// Outcomes of asking a flag that another requires.
const (
	Met          PrerequisiteOutcome = "met"
	Unmet        PrerequisiteOutcome = "unmet"
	RequiredNone PrerequisiteOutcome = "missing" // the flag does not exist, so it is not on
	RequiredLoop PrerequisiteOutcome = "cycle"   // the question would close a cycle: the prerequisite is unmet
	BeyondLimit  PrerequisiteOutcome = "limit"   // too many flags require each other: the prerequisite is unmet
)

// Prerequisites returns what the flag requires of others in an environment. The caller must not change it.
func (f *Flag) Prerequisites(environmentID string) []state.Prerequisite {
	if e := f.environment(environmentID); e != nil && e.targeting != nil {
		return e.targeting.prerequisites
	}
	return nil
}

func (e *environment) required() []prerequisite {
	if e.targeting == nil {
		return nil
	}
	return e.targeting.required
}

// prerequisite is a compiled prerequisite.
type prerequisite struct {
	*state.Prerequisite
	values []plainValue // that the other flag may serve
}

// compilePrerequisites compiles prerequisites. was is the environment that the flag had before, nil for none.
func compilePrerequisites(list []state.Prerequisite, was *environment) []prerequisite {
	if was != nil && was.targeting != nil && sameSlice(list, was.targeting.prerequisites) {
		return was.targeting.required
	}
	var compiled []prerequisite
	for i := range list {
		p := prerequisite{Prerequisite: &list[i]}
		for _, s := range p.Serves {
			if s.VariationID == "" && len(s.Value) > 0 {
				p.values = append(p.values, newPlainValue(s.Value))
			}
		}
		compiled = append(compiled, p)
	}
	return compiled
}

// RequiredFlags yields the existing flags that the last evaluation evaluated on behalf of its flag, by their keys and
// each once, with what they served.
func (x *Context) RequiredFlags() iter.Seq2[string, *Result] {
	return func(yield func(string, *Result) bool) {
		for i := range x.required {
			if a := &x.required[i]; a.exists && !yield(a.key, &a.Result) {
				return
			}
		}
	}
}

// answered is what a required flag serves, which is evaluated once.
type answered struct {
	key    string
	exists bool
	plain  plainValue // of the value that it serves; without a kind until it is asked
	Result
}

// unmet returns the first of a flag's prerequisites that is not met, nil if all are. chain counts the flags up to this
// one that require each other. The error is one of Evaluate.
func (f *Flag) unmet(
	list []prerequisite, environmentID string, x *Context, left *effort, chain int,
) (*prerequisite, error) {
	for i := range list {
		outcome, err := f.require(&list[i], environmentID, x, left, chain)
		if err != nil {
			return nil, err
		}
		if outcome != Met {
			return &list[i], nil
		}
	}
	return nil, nil
}

// require reports whether one of a flag's prerequisites is met.
func (f *Flag) require(
	p *prerequisite, environmentID string, x *Context, left *effort, chain int,
) (PrerequisiteOutcome, error) {
	if *left -= segmentEffort; *left < 0 {
		return Unmet, ErrTooLarge
	}
	x.asked.any = true
	of, g := x.Dependencies.Find(p.FlagKey), x.Dependencies.requiredGraph(environmentID)
	if of != nil {
		x.asked.note(of.state.UpdatedAt)
	}
	if g != nil {
		x.asked.note(g.newestChange[p.FlagKey])
		if g.closesCycle(f.state.Key, p.FlagKey) {
			return RequiredLoop, nil
		}
	}
	if chain >= maxFlagChain {
		return BeyondLimit, nil
	}
	i := 0
	for i < len(x.required) && x.required[i].key != p.FlagKey {
		i++
	}
	if i == len(x.required) {
		if i >= maxRequired {
			return BeyondLimit, nil
		}
		if err := of.answer(p.FlagKey, environmentID, x, left, chain+1); err != nil {
			return Unmet, err
		}
	}
	a := &x.required[i]
	met := a.meets(p, left)
	switch {
	case *left < 0:
		return Unmet, ErrTooLarge
	case met:
		return Met, nil
	case !a.exists:
		return RequiredNone, nil
	default:
		return Unmet, nil
	}
}

// answer evaluates a required flag, nil for one that never existed, and adds what it serves to the context.
func (f *Flag) answer(key, environmentID string, x *Context, left *effort, chain int) error {
	i := len(x.required)
	x.required = slices.Grow(x.required, 1)[:i+1]
	a := &x.required[i]
	a.key, a.exists, a.plain, a.Enabled = key, false, plainValue{}, false
	if f == nil || !f.state.Exists {
		return nil
	}
	x.asked.stale = x.asked.stale || f.stale
	var r Result
	err := f.decide(&r, environmentID, x, left, chain)
	if missing, ok := err.(*NoUnitError); ok && missing.FlagKey == "" { //nolint:errorlint // not wrapped
		err = &NoUnitError{missing.Attribute, key}
	}
	a = &x.required[i] // the memory may have moved
	a.exists, a.Result = true, r
	return err
}

// meets reports whether a flag is and serves what a prerequisite demands.
func (a *answered) meets(p *prerequisite, left *effort) bool {
	if p.Off || !a.Enabled {
		return p.Off && !a.Enabled
	}
	for i := range p.Serves {
		s := &p.Serves[i]
		if s.VariationID == "" && a.servesText(s.Value, left) || s.VariationID != "" && s.VariationID == a.VariationID {
			return true
		}
	}
	for i := range p.values {
		if a.serves(&p.values[i], left) {
			return true
		}
	}
	return false
}

// servesText reports whether a flag serves a value in the same spelling.
func (a *answered) servesText(value json.RawMessage, left *effort) bool {
	*left--
	if len(value) == 0 || len(value) != len(a.Value) {
		return false
	}
	*left -= compareEffort(value)
	return bytes.Equal(value, a.Value)
}

// serves reports whether a flag serves a value in any spelling.
func (a *answered) serves(v *plainValue, left *effort) bool {
	if len(a.Value) == 0 || kindOf(a.Value[0]) != v.kind {
		return false
	}
	if a.plain.kind == 0 {
		if *left -= plainEffort(a.Value); *left < 0 {
			return false
		}
		a.plain = newPlainValue(a.Value)
	}
	*left -= 1 + compareEffort(a.plain.text) + effort(len(a.plain.number.rest))>>6
	return *left >= 0 && a.plain.number == v.number && bytes.Equal(a.plain.text, v.text)
}
