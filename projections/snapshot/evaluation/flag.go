// Package evaluation compiles flags and evaluates them for a context. It knows facts, the rule language and the states
// of flags alone.
package evaluation

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"flagledger/events"
	"flagledger/events/rules"
	"flagledger/events/state"
)

// Flag is a flag compiled for evaluation. It is immutable: each fact makes a new one. There may be millions in memory,
// so it is small.
type Flag struct {
	state        *state.Flag // that it was compiled from; nothing changes it
	version      events.Revision
	defaultValue json.RawMessage
	variations   []*Variation
	split        *rollout // between the variations; nil if they have no weight
	environments []environment
	salt         murmur
	boolean      bool
	stale        bool // it serves older targeting somewhere
	status       status
}

type status uint8

const (
	active status = iota
	inactive
	archived
)

// Variation is a variation of a flag. It is immutable.
type Variation struct {
	ID     string
	Name   string
	Value  json.RawMessage
	weight events.Weight
}

// environment is a flag in an environment. A flag without an entry for one is off there and has no rules.
type environment struct {
	id        string
	enabled   bool
	targeting *targeting // nil without prerequisites, rules and fallthrough
}

// targeting is the prerequisites and the compiled rules and fallthrough of an environment.
type targeting struct {
	prerequisites    []state.Prerequisite
	required         []prerequisite // the prerequisites, compiled
	rules            []rule
	fallthroughServe *serve // served if no rule matches; nil if the flag decides
	stale            bool   // the newest rules or fallthrough could not be compiled: all of it is older
	// segments are the sorted keys of those that the rules refer to.
	segments []string
}

// Version returns the number of the flag's last event that it serves.
func (f *Flag) Version() events.Revision { return f.version }

// State returns the state that the flag was compiled from. The caller must not change it.
func (f *Flag) State() *state.Flag { return f.state }

// Segments returns the sorted keys of the segments that the flag's rules in an environment refer to. The
// caller must not change them.
func (f *Flag) Segments(environmentID string) []string {
	if e := f.environment(environmentID); e != nil && e.targeting != nil {
		return e.targeting.segments
	}
	return nil
}

// Targeted yields the ids of the environments in which the flag has prerequisites, rules or a fallthrough.
func (f *Flag) Targeted() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range f.environments {
			if e := &f.environments[i]; e.targeting != nil && !yield(e.id) {
				return
			}
		}
	}
}

// Compile compiles a flag's state for some environments, which it keeps. before is the flag as compiled of an earlier
// state, nil for none: what has not changed since is used again.
//
// If the rules or the fallthrough of an environment cannot be compiled, the error names it: the flag goes on serving
// there what it did before.
func Compile(s *state.Flag, environments []events.EnvironmentRef, before *Flag) (Flag, error) {
	if before == nil {
		before = &Flag{state: &state.Flag{}}
	}
	f := Flag{
		state:        s,
		version:      s.Version,
		defaultValue: shared(s.DefaultValue),
		salt:         before.salt,
		boolean:      s.Type == events.BooleanFlag,
		status:       statusOf(s.Status),
	}
	if before.state.Salt != s.Salt || before.salt == (murmur{}) {
		f.salt = newMurmur(s.Salt)
	}
	sameVariations := f.compileVariations(s.Variations, before)
	var firstErr error
	for _, e := range environments {
		compiled := environment{id: e.ID, enabled: s.Enabled.Has(e.ID)}
		was := before.environment(e.ID)
		unchanged := was != nil && sameTargeting(s, before.state, e.ID)
		if unchanged && sameVariations && s.Salt == before.state.Salt {
			compiled.targeting = was.targeting
		} else {
			t, err := f.compileTargeting(s, e.ID, before, was, sameVariations)
			reported := unchanged && was.targeting != nil && was.targeting.stale
			if err != nil && firstErr == nil && !reported {
				firstErr = fmt.Errorf("in environment %s: %w", e.ID, err)
			}
			compiled.targeting = t
		}
		if compiled.enabled || compiled.targeting != nil {
			f.environments = append(f.environments, compiled)
		}
	}
	if firstErr != nil {
		f.version = before.version
	}
	f.stale = slices.ContainsFunc(f.environments,
		func(e environment) bool { return e.targeting != nil && e.targeting.stale })
	return f, firstErr
}

// sameTargeting reports whether two states of a flag have the same prerequisites, rules and fallthrough in an
// environment.
func sameTargeting(a, b *state.Flag, environmentID string) bool {
	s, inA := a.Fallthrough[environmentID]
	t, inB := b.Fallthrough[environmentID]
	return inA == inB && sameServe(&s, &t) && sameSlice(a.Rules[environmentID], b.Rules[environmentID]) &&
		sameSlice(a.Prerequisites[environmentID], b.Prerequisites[environmentID])
}

func sameServe(a, b *events.Serve) bool {
	return a.VariationID == b.VariationID && a.BucketBy == b.BucketBy && sameSlice(a.Rollout, b.Rollout) &&
		sameSlice(a.Value, b.Value)
}

// sameSlice reports whether two slices are one in memory.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// compileVariations compiles the variations and the flag's own split, and reports whether no variation has changed.
func (f *Flag) compileVariations(list []events.Variation, before *Flag) (same bool) {
	if len(list) == 0 {
		return len(before.variations) == 0
	}
	f.variations = make([]*Variation, len(list))
	same = len(list) == len(before.variations)
	for i, v := range list {
		was, _ := before.variation(v.ID)
		if was == nil || was.Name != v.Name || was.weight != v.Weight || string(was.Value) != string(v.Value) {
			same = false
			was = &Variation{ID: v.ID, Name: v.Name, Value: shared(v.Value), weight: v.Weight}
		}
		f.variations[i] = was
	}
	if same && f.salt == before.salt && slices.Equal(f.variations, before.variations) {
		f.variations, f.split = before.variations, before.split
		return true
	}
	var shares []share
	for _, v := range f.variations {
		if v.weight > 0 {
			shares = append(shares, share{v, uint64(v.weight)})
		}
	}
	f.split = newRollout(f.salt, events.TargetingKey, shares)
	return same
}

// compileTargeting compiles the prerequisites, the rules and the fallthrough of an environment. If that fails, it
// returns those that the flag had before, nil for none.
func (f *Flag) compileTargeting(
	s *state.Flag, id string, before *Flag, was *environment, sameVariations bool,
) (*targeting, error) {
	list := s.Rules[id]
	sent, hasFallthrough := s.Fallthrough[id]
	if len(list) == 0 && !hasFallthrough && len(s.Prerequisites[id]) == 0 {
		return nil, nil
	}
	t := &targeting{
		prerequisites: s.Prerequisites[id],
		required:      compilePrerequisites(s.Prerequisites[id], was),
		segments:      state.SegmentsOf(list),
	}
	parsing := rules.MaxRegexpCost
	if len(list) > 0 {
		t.rules = make([]rule, len(list))
	}
	fail := func(err error) (*targeting, error) {
		stale := &targeting{stale: true}
		if was != nil && was.targeting != nil {
			*stale = *was.targeting
			stale.stale = true
		}
		return stale, err
	}
	for i := range list {
		var err error
		known := before.ruleLike(id, was, &list[i])
		if t.rules[i], err = f.compileRule(&list[i], known, sameVariations, &parsing); err != nil {
			return fail(fmt.Errorf("rule %s: %w", list[i].ID, err))
		}
	}
	if hasFallthrough {
		compiledServe, err := f.compileServe(sent, f.salt)
		if err != nil {
			return fail(fmt.Errorf("the fallthrough: %w", err))
		}
		t.fallthroughServe = &compiledServe
	}
	return t, nil
}

// knownRule is a compiled rule with what it was compiled from.
type knownRule struct {
	*rule
	source *events.Rule
}

// ruleLike returns the rule with the id of another in an environment; it has no rule if there is none, or the
// environment serves older rules than its state has.
func (f *Flag) ruleLike(environmentID string, in *environment, r *events.Rule) (known knownRule) {
	if in == nil || in.targeting == nil || in.targeting.stale {
		return known
	}
	list := f.state.Rules[environmentID]
	for i := range list {
		if list[i].ID == r.ID {
			return knownRule{&in.targeting.rules[i], &list[i]}
		}
	}
	return known
}

// compileRule compiles a rule, and takes from a known one what is the same.
func (f *Flag) compileRule(
	r *events.Rule, known knownRule, sameVariations bool, parsing *int,
) (compiled rule, err error) {
	compiled.id = r.ID
	if known.rule != nil && sameSlice(known.source.Conditions, r.Conditions) {
		compiled.conditions = known.conditions
	} else if compiled.conditions, err = compileConditions(r.Conditions, "", parsing); err != nil {
		return rule{}, err
	}
	if known.rule != nil && sameVariations && known.source.Salt == r.Salt && sameServe(&known.source.Serve, &r.Serve) {
		compiled.serve = known.serve
		return compiled, nil
	}
	compiled.serve, err = f.compileServe(r.Serve, newMurmur(r.Salt))
	return compiled, err
}

func statusOf(s events.FlagStatus) status {
	switch s {
	case events.ArchivedFlag:
		return archived
	case events.InactiveFlag:
		return inactive
	default:
		return active
	}
}

// shared returns one copy for all flags of a value that many of them have.
func shared(value json.RawMessage) json.RawMessage {
	switch string(value) {
	case "true":
		return True
	case "false":
		return False
	default:
		return value
	}
}

// environment returns the flag in an environment, nil if it is off there and has no rules.
func (f *Flag) environment(id string) *environment {
	for i := range f.environments {
		if f.environments[i].id == id {
			return &f.environments[i]
		}
	}
	return nil
}

func (f *Flag) variation(id string) (*Variation, error) {
	for _, v := range f.variations {
		if v.ID == id {
			return v, nil
		}
	}
	return nil, fmt.Errorf("the flag has no variation %s", id)
}
