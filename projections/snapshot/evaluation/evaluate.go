package evaluation

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"flagledger/events"
)

// Reason says why a value was served. OFF, RULE_MATCH, FALLTHROUGH and PREREQUISITE_FAILED are LaunchDarkly's
// names; ARCHIVED is ours.
type Reason string

// The reasons.
const (
	Archived    Reason = "ARCHIVED"
	Off         Reason = "OFF"
	RuleMatch   Reason = "RULE_MATCH"
	Fallthrough Reason = "FALLTHROUGH"
	// PrerequisiteFailed is of a flag that is off because of another one that it requires.
	PrerequisiteFailed Reason = "PREREQUISITE_FAILED"
)

// Result is what a flag serves.
type Result struct {
	Enabled       bool
	Value         json.RawMessage
	Reason        Reason
	VariationID   string // empty if no variation was served
	VariationName string
	RuleID        string // empty if no rule matched
	Split         bool   // the variation was chosen by weight
	HasRules      bool   // the environment has rules, whether or not one matched; false if the flag is off
	Version       events.Revision
	// ChangedAt is when the flag got the version, as recorded; zero if it, or a flag that it requires, serves a part of an
	// older one.
	ChangedAt time.Time
	// Prerequisite is the key of the required flag that keeps the flag off; empty for another reason.
	Prerequisite string
	// AskedAt is when the newest of all changed that was asked beside the flag, as recorded: segments and required flags,
	// and what they lead to as far as it decides on cycles. Asked is false if the answer depends on the flag alone.
	AskedAt  time.Time
	Asked    bool
	AskedNow time.Time // the time of the evaluation; zero if that was not asked

	Variation *Variation // nil if no variation was served
}

// Context describes the unit, usually a person, that a flag is evaluated for.
type Context struct {
	TargetingKey string
	// Attributes may hold nil, bool, string, Number, []any and map[string]any. docs/rules.md says how conditions compare
	// them.
	Attributes map[string]any

	Dependencies *Dependencies // of the tenant's flags
	Environment  string        // its name
	Now          time.Time     // of the evaluation; if zero, it is set when it is asked
	asked        asked
	required     []answered // what the evaluation has asked of required flags; its memory is reused
}

// Reset empties the context, and keeps memory for the next evaluation.
func (x *Context) Reset() {
	clear(x.required)
	*x = Context{required: x.required[:0]}
}

// NoUnitError reports that the attribute that a split buckets by is missing.
type NoUnitError struct {
	Attribute string // targetingKey, or the name of an attribute; empty if the caller may not know it
	FlagKey   string // of the flag with the split if another one requires it; empty for the flag itself
}

func (e *NoUnitError) Error() string { return cmp.Or(e.Attribute, "attributes") + " " + e.Because() }

// WithoutFlag returns the error for a caller who may know neither the required flag nor the attributes that it uses.
func (e *NoUnitError) WithoutFlag() *NoUnitError {
	if e.Attribute == events.TargetingKey {
		return errNoTargetingKey
	}
	return &NoUnitError{}
}

// Because says why the attribute is required.
func (e *NoUnitError) Because() string {
	if e.Attribute == "" {
		return "lack what a flag splits its traffic by"
	}
	if e.FlagKey != "" {
		return "is required: the flag requires " + e.FlagKey + ", which splits its traffic by it"
	}
	return "is required: the flag splits its traffic by it"
}

// ErrTooLarge reports that comparing a context with the rules of a flag would take too long.
var ErrTooLarge = errors.New("the context is too large for the rules of the flag")

// The boolean values, which all flags share.
var (
	True  = json.RawMessage("true")
	False = json.RawMessage("false")
)

var errNoTargetingKey = &NoUnitError{Attribute: events.TargetingKey}

// Evaluate returns what the flag serves in an environment, without allocating. The error is a *NoUnitError or
// ErrTooLarge.
func (f *Flag) Evaluate(environmentID string, c *Context) (r Result, err error) {
	err = f.evaluate(&r, environmentID, c, maxEffort)
	return r, err
}

// EvaluateShort works like Evaluate, but returns ErrTooLarge after some 200 µs of comparing.
func (f *Flag) EvaluateShort(environmentID string, c *Context) (r Result, err error) {
	err = f.evaluate(&r, environmentID, c, shortEffort)
	return r, err
}

// evaluate evaluates the flag to an empty result.
func (f *Flag) evaluate(r *Result, environmentID string, c *Context, left effort) error {
	if c.asked.any { // by the evaluation before
		c.asked, c.required = asked{}, c.required[:0]
	}
	err := f.decide(r, environmentID, c, &left, 1)
	if err != nil {
		*r = Result{}
	}
	if c.asked.any {
		r.Asked, r.AskedAt, r.AskedNow = true, c.asked.newest, c.asked.now
		if c.asked.stale {
			r.ChangedAt = time.Time{}
		}
	}
	return err
}

// decide evaluates the flag to an empty result, which is of no use after an error. chain counts the flags that require
// each other up to this one.
func (f *Flag) decide(r *Result, environmentID string, c *Context, left *effort, chain int) error {
	r.Value, r.Version = f.defaultValue, f.version
	if !f.stale {
		r.ChangedAt = f.state.UpdatedAt
	}
	e := f.environment(environmentID)
	switch {
	case f.status == archived:
		r.Reason = Archived
		return nil
	case f.status == inactive || e == nil || !e.enabled:
		r.Reason = Off
		return nil
	}
	if list := e.required(); len(list) > 0 {
		unmet, err := f.unmet(list, environmentID, c, left, chain)
		if err != nil {
			return err
		}
		if unmet != nil {
			r.Reason, r.Prerequisite = PrerequisiteFailed, unmet.FlagKey
			return nil
		}
	}
	r.Enabled, r.Reason = true, Fallthrough
	if t := e.targeting; t != nil {
		r.HasRules = len(t.rules) > 0
		for i := range t.rules {
			rule := &t.rules[i]
			matched := rule.matches(c, left)
			if *left < 0 {
				return ErrTooLarge
			}
			if matched {
				r.Reason, r.RuleID = RuleMatch, rule.id
				return r.serve(&rule.serve, c)
			}
		}
		if t.fallthroughServe != nil {
			return r.serve(t.fallthroughServe, c)
		}
	}
	switch {
	case f.split != nil:
		return r.pick(f.split, c)
	case f.boolean:
		r.Value = True
	}
	return nil
}

func (r *Result) serve(s *serve, c *Context) error {
	switch {
	case s.rollout != nil:
		return r.pick(s.rollout, c)
	case s.variation != nil:
		r.of(s.variation)
	default:
		r.Value = s.value
	}
	return nil
}

func (r *Result) pick(split *rollout, c *Context) error {
	v, ok := split.pick(c)
	if !ok {
		return split.noUnit
	}
	r.Split = true
	r.of(v)
	return nil
}

func (r *Result) of(v *Variation) {
	r.Value, r.VariationID, r.VariationName, r.Variation = v.Value, v.ID, v.Name, v
}
