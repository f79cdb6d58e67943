package commands

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"flagledger/events"
	"flagledger/events/state"
)

// Limits of a flag's prerequisites in an environment.
const (
	maxPrerequisites = 20
	maxServedValues  = 50 // of a prerequisite
	// maxPrerequisiteBytes limits their JSON: an event holds the old and the new ones.
	maxPrerequisiteBytes = 128 << 10
)

// RequiredFlags has by key what the snapshot says of flags that another one would require in an environment. It may
// miss a concurrent change: evaluation gives prerequisites of a missing flag, or with a cycle, a meaning.
type RequiredFlags map[string]RequiredFlag

// RequiredFlag is a flag that another one would require.
type RequiredFlag struct {
	Unusable   string // why the other one cannot require it; empty if it can
	Type       events.FlagType
	Variations []string // their ids
}

// noSuchFlag is what is wrong with a key that RequiredFlags do not have.
const noSuchFlag = "must be the key of a flag"

// unusable returns why a flag cannot be required, empty if it can.
func (r RequiredFlags) unusable(key string) string {
	other, known := r[key]
	if !known {
		return noSuchFlag
	}
	return other.Unusable
}

// SetPrerequisites replaces what a flag requires of others in an environment.
type SetPrerequisites struct {
	FlagRef
	Environment   events.EnvironmentRef
	Prerequisites []events.Prerequisite // nil if they were not sent, which is refused
	// Required has the flags of new and of changed prerequisites. Others are not checked, so that a broken flag can be
	// repaired step by step.
	Required RequiredFlags
}

func (c SetPrerequisites) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admit(f); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	before := f.PrerequisitesIn(c.Environment.ID)
	after := c.check(wrong, before)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if events.StoredEqual(before, after) {
		return nil, nil
	}
	return checkSizes(&f, events.PrerequisitesChanged{Environment: c.Environment, From: before, To: after})
}

// check returns the prerequisites to store, and collects what is wrong with them.
func (c SetPrerequisites) check(wrong FieldErrors, before []events.Prerequisite) (after []events.Prerequisite) {
	const list = "prerequisites"
	wrong.Check(c.Prerequisites != nil, list, "is required: an empty list removes all prerequisites")
	wrong.Check(len(c.Prerequisites) <= maxPrerequisites, list, "at most %d prerequisites", maxPrerequisites)
	for i, sent := range c.Prerequisites[:min(len(c.Prerequisites), maxPrerequisites)] {
		at := list + "[" + strconv.Itoa(i) + "]"
		same := func(p events.Prerequisite) bool { return p.FlagKey == sent.FlagKey }
		wrong.Check(sent.FlagKey != "", at+".flagKey", "is required")
		wrong.Check(!slices.ContainsFunc(after, same), at+".flagKey", "is named twice: one prerequisite can have all values")
		p := events.Prerequisite{FlagKey: sent.FlagKey, Off: sent.Off, Serves: servedValues(wrong, at, sent)}
		after = append(after, p)
		if !slices.ContainsFunc(before, func(b events.Prerequisite) bool { return events.StoredEqual(b, p) }) {
			c.checkRequired(wrong, at, p)
		}
	}
	if state.PrerequisitesBytes(after) > max(maxPrerequisiteBytes, state.PrerequisitesBytes(before)) {
		wrong.Check(false, list, "take more than %d bytes", maxPrerequisiteBytes)
	}
	return after
}

// servedValues returns the values of a prerequisite as they are stored.
func servedValues(wrong FieldErrors, at string, sent events.Prerequisite) (serves []events.ServedValue) {
	wrong.Check(!sent.Off || len(sent.Serves) == 0, at+".serves", "must be left out if off is true")
	wrong.Check(sent.Off || len(sent.Serves) > 0, at+".serves", "needs a variation or a value, unless off is true")
	wrong.Check(len(sent.Serves) <= maxServedValues, at+".serves", "at most %d variations and values", maxServedValues)
	for i, s := range sent.Serves[:min(len(sent.Serves), maxServedValues)] {
		s.Value = compact(s.Value)
		same := func(other events.ServedValue) bool { return events.StoredEqual(other, s) }
		here := place(at+".serves", i)
		wrong.Check((s.VariationID == "") != (len(s.Value) == 0), here, "needs exactly one of variationId and value")
		wrong.Check(!slices.ContainsFunc(serves, same), here, "is named twice")
		serves = append(serves, s)
	}
	return serves
}

// checkRequired checks a prerequisite with the other flag.
func (c SetPrerequisites) checkRequired(wrong FieldErrors, at string, p events.Prerequisite) {
	if why := c.Required.unusable(p.FlagKey); why != "" {
		wrong.Check(false, at+".flagKey", "%s", why)
		return
	}
	other := c.Required[p.FlagKey]
	for i, s := range p.Serves {
		here := place(at+".serves", i)
		if s.VariationID != "" {
			known := slices.Contains(other.Variations, s.VariationID)
			wrong.Check(known, here+".variationId", "the flag %q has no variation of this id", p.FlagKey)
		} else if len(s.Value) > 0 {
			checkValue(wrong, here+".value", other.Type, s.Value)
		}
	}
}

// Dependent is a flag that requires the one of a command in an environment, as the snapshot has it. It may miss a
// concurrent change.
type Dependent struct {
	FlagKey      string
	Environment  string // its name
	Prerequisite events.Prerequisite
}

// ErrOtherFlagsFirst is the cause of a refusal that a change of other flags may end.
var ErrOtherFlagsFirst = errors.New("other flags must change first")

// refuseBefore returns a refusal until other flags change.
func refuseBefore(format string, args ...any) error {
	return &Error{Kind: Conflict, Detail: fmt.Sprintf(format, args...), Err: ErrOtherFlagsFirst}
}

// checkDependents refuses a change of a flag that leaves prerequisites of its dependents unmet for good: its deletion
// or archiving, and the removal of a variation that they name. A flag that is archived already may stay so.
func checkDependents(list []Dependent, from, to *state.Flag) error {
	if !from.Exists {
		return nil
	}
	switch {
	case !to.Exists, to.Status == events.ArchivedFlag && from.Status != events.ArchivedFlag:
		if names := dependentNames(list, func(events.Prerequisite) bool { return true }); len(names) > 0 {
			return refuseBefore("other flags require it: %s", someOf(names))
		}
	default:
		for _, v := range from.Variations {
			if to.Variation(v.ID) != nil {
				continue
			}
			named := func(p events.Prerequisite) bool { return p.NamesVariation(v.ID) }
			if names := dependentNames(list, named); len(names) > 0 {
				return refuseBefore("other flags require that the variation %q is served: %s", v.Name, someOf(names))
			}
		}
	}
	return nil
}

// dependentNames returns the dependents with some prerequisites in words, a flag with all its environments.
func dependentNames(list []Dependent, has func(events.Prerequisite) bool) (names []string) {
	environments := map[string][]string{}
	var keys []string
	for _, d := range list {
		if !has(d.Prerequisite) {
			continue
		}
		if environments[d.FlagKey] == nil {
			keys = append(keys, d.FlagKey)
		}
		environments[d.FlagKey] = append(environments[d.FlagKey], d.Environment)
	}
	for _, key := range keys {
		names = append(names, key+" in "+strings.Join(environments[key], " and "))
	}
	return names
}

// checkRestored refuses to restore prerequisites in an environment whose flags or variations are gone, or that close a
// cycle. What the flag has there now may stay.
func (r RequiredFlags) checkRestored(now, then []events.Prerequisite, environment string) error {
	for _, p := range then {
		if slices.ContainsFunc(now, func(n events.Prerequisite) bool { return events.StoredEqual(n, p) }) {
			continue
		}
		switch why := r.unusable(p.FlagKey); {
		case why == noSuchFlag:
			return refuseBefore("the flag %q, which was required in %s, is gone", p.FlagKey, environment)
		case why != "":
			return refuseBefore("the flag %q, which was required in %s, cannot be: it %s", p.FlagKey, environment, why)
		}
		for _, s := range p.Serves {
			if s.VariationID != "" && !slices.Contains(r[p.FlagKey].Variations, s.VariationID) {
				return refuseBefore("the variation %s of the flag %q, which was required in %s, is gone", s.VariationID,
					p.FlagKey, environment)
			}
		}
	}
	return nil
}
