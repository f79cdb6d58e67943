package evaluation

import (
	"bytes"
	"encoding/json"
	"iter"
	"reflect"
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
	if e := f.environment(environmentID); e != nil {
		return e.required()
	}
	return nil
}

func (e *environment) required() []state.Prerequisite {
	if e.targeting == nil {
		return nil
	}
	return e.targeting.prerequisites
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
	Result
}

// unmet returns the first of a flag's prerequisites that is not met, nil if all are. chain counts the flags up to this
// one that require each other. The error is one of Evaluate.
func (f *Flag) unmet(
	list []state.Prerequisite, environmentID string, x *Context, left *effort, chain int,
) (*state.Prerequisite, error) {
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
	p *state.Prerequisite, environmentID string, x *Context, left *effort, chain int,
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
		x.asked.note(g.reached[p.FlagKey])
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
	switch a := &x.required[i]; {
	case a.meets(p):
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
	a.key, a.exists, a.Enabled = key, false, false
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
func (a *answered) meets(p *state.Prerequisite) bool {
	if p.Off || !a.Enabled {
		return p.Off && !a.Enabled
	}
	for i := range p.Serves {
		s := &p.Serves[i]
		if s.VariationID != "" && s.VariationID == a.VariationID || s.VariationID == "" && sameValue(s.Value, a.Value) {
			return true
		}
	}
	return false
}

// sameValue reports whether two values are equal: numbers by value, objects whatever the order of their members.
func sameValue(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	switch a[0] {
	case 't', 'f', 'n':
		return false
	case '"', '{', '[':
		spelt := a[0] != '"' || bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0
		return a[0] == b[0] && spelt && reflect.DeepEqual(plain(a), plain(b))
	default:
		return (b[0] == '-' || b[0] >= '0' && b[0] <= '9') && ParseNumber(a) == ParseNumber(b)
	}
}

// plain returns JSON as Go values, with exact numbers.
func plain(value json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	_ = d.Decode(&v) // facts hold valid JSON
	return exact(v)
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		return ParseNumber([]byte(v))
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = exact(v[name])
		}
	}
	return v
}
