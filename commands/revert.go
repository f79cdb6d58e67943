package commands

import (
	"slices"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// RevertFlag reverts a flag to an earlier state, in one append. It does nothing if the flag has that state. A deleted
// or replaced flag is re-created with its old ids and salt.
//
// Environments that were added since are as in a new flag: off, without rules.
type RevertFlag struct {
	FlagRef
	To state.Flag
	At time.Time // the requested time; zero if a version was requested
	// Environments are the tenant's, EnvironmentsAt those at the earlier time. One that is gone must not have been
	// used.
	Environments, EnvironmentsAt []events.EnvironmentRef
	// Only, if set, is the only environment to revert.
	Only *events.EnvironmentRef
	// KeepOther returns ErrOtherFlag if a different flag has the key now. Otherwise the revert replaces that flag.
	KeepOther bool
	// ProjectMissing reports that the flag's earlier project is gone.
	ProjectMissing bool
	// SegmentsMissing are the segments that To refers to and that are gone.
	SegmentsMissing []string
	// Required are the flags that To requires, by environment id.
	Required   map[string]RequiredFlags
	Dependents []Dependent
	// FlagCount is the tenant's number of flags, from Writer.Reserve with MaxFlags. It matters for a deleted flag.
	FlagCount int
}

func (c RevertFlag) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admitVersion(f); err != nil {
		return nil, err
	}
	if f.Version == c.To.Version {
		return nil, nil // unchanged, even if its project or an environment is gone
	}
	// other reports that the earlier flag is not the current one, so that a new life begins.
	other := !f.Exists || f.ID != c.To.ID || f.Salt != c.To.Salt || f.Type != c.To.Type
	if c.KeepOther && other && f.Exists {
		return nil, ErrOtherFlag
	}
	r := reversal{to: &c.To, flag: f.Clone()}
	err := c.checkSegments()
	if err != nil {
		return nil, err
	}
	if err := c.checkPrerequisites(&f, other); err != nil {
		return nil, err
	}
	if c.Only != nil {
		err = c.checkEnvironment(&f, other)
	} else {
		err = c.checkPlaces(&f)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case c.Only != nil:
		r.environments([]events.EnvironmentRef{*c.Only})
	case other:
		r.begin(f.Exists)
		r.environments(c.Environments)
	default:
		r.turnOff(c.Environments)
		r.fields()
		r.addVariations()
		r.rules(c.Environments)
		r.removeVariations()
		r.status()
		r.turnOn(c.Environments)
	}
	reverted := events.FlagReverted{Version: c.To.Version, At: c.At, Environment: c.Only}
	if from, to := variationIDs(r.flag.Variations), variationIDs(c.To.Variations); c.Only == nil &&
		!slices.Equal(from, to) {
		reverted.Variations = &events.Change[[]string]{From: from, To: to}
	}
	if len(r.facts) == 0 && reverted.Variations == nil {
		return nil, nil
	}
	if err := checkDependents(c.Dependents, &f, &r.flag); err != nil {
		return nil, err
	}
	return checkSizes(&f, append(r.facts, reverted)...)
}

// ErrOtherFlag reports that a flag cannot be restored because a different flag has its key.
var ErrOtherFlag = &Error{Kind: Conflict, Detail: "another flag, which was created since, has the key: it stays"}

// Changes reports whether the command would change a flag. It is false if the command would be refused.
func (c RevertFlag) Changes(f state.Flag) bool {
	facts, err := c.Decide(f)
	return err == nil && len(facts) > 0
}

// Bytes returns the approximate size of the command's facts: that of the current or of the earlier flag, whichever is
// larger.
func (c RevertFlag) Bytes(f state.Flag) int {
	return max(f.Size(), c.To.Size())
}

// checkPlaces refuses a state whose project or environment is gone, or if the tenant has too many flags.
func (c RevertFlag) checkPlaces(f *state.Flag) error {
	if c.ProjectMissing {
		return Refuse(Conflict, "the project %s, which the flag was in, is gone", c.To.ProjectID)
	}
	var gone []string
	for _, e := range c.EnvironmentsAt {
		used := c.To.Enabled.Has(e.ID) || len(c.To.Rules[e.ID]) > 0 || c.To.FallthroughIn(e.ID) != nil ||
			len(c.To.Prerequisites[e.ID]) > 0
		if used && !slices.Contains(c.Environments, e) {
			gone = append(gone, e.Name)
		}
	}
	switch {
	case len(gone) == 1:
		return Refuse(Conflict, "the environment %s, in which the flag was on or had rules or prerequisites, is gone",
			gone[0])
	case len(gone) > 1:
		return Refuse(Conflict, "the environments %s, in which the flag was on or had rules or prerequisites, are gone",
			strings.Join(gone, " and "))
	case !f.Exists && c.FlagCount >= MaxFlags:
		return Refuse(Conflict, "the tenant has %d flags, which is the limit: delete one first", c.FlagCount)
	}
	return nil
}

// checkSegments refuses rules that refer to a segment that is gone.
func (c RevertFlag) checkSegments() error {
	for _, e := range c.Environments {
		if c.Only != nil && e.ID != c.Only.ID {
			continue
		}
		for _, key := range state.SegmentsOf(c.To.Rules[e.ID]) {
			if slices.Contains(c.SegmentsMissing, key) {
				return Refuse(Conflict, "the segment %q, which rules in %s referred to, is gone", key, e.Name)
			}
		}
	}
	return nil
}

// checkPrerequisites refuses prerequisites whose flags or variations are gone, or that close a cycle. other reports
// that the flag begins a new life, without those that it has now.
func (c RevertFlag) checkPrerequisites(f *state.Flag, other bool) error {
	for _, e := range c.Environments {
		if c.Only != nil && e.ID != c.Only.ID {
			continue
		}
		var now []events.Prerequisite
		if !other {
			now = f.PrerequisitesIn(e.ID)
		}
		if err := c.Required[e.ID].checkRestored(now, c.To.PrerequisitesIn(e.ID), e.Name); err != nil {
			return err
		}
	}
	return nil
}

// checkEnvironment refuses to revert one environment of a replaced flag, or one whose served variations are gone.
func (c RevertFlag) checkEnvironment(f *state.Flag, other bool) error {
	if other {
		return Refuse(Conflict, "the flag was deleted since: one environment of it alone cannot be brought back")
	}
	serves := []events.Serve{}
	for _, r := range c.To.Rules[c.Only.ID] {
		serves = append(serves, r.Serve)
	}
	if s := c.To.FallthroughIn(c.Only.ID); s != nil {
		serves = append(serves, *s)
	}
	for _, s := range serves {
		for _, id := range s.Variations() {
			if f.Variation(id) == nil {
				return Refuse(Conflict, "the variation %s, which was served in %s, is gone", id, c.Only.Name)
			}
		}
	}
	return nil
}

// reversal collects the facts of a revert. Their order is safe between any two: the flag goes off first, variations
// come before the rules that serve them and are removed after them, and the flag becomes active and goes on last.
type reversal struct {
	to    *state.Flag
	flag  state.Flag // with the facts so far
	facts []events.Fact
}

func (r *reversal) add(fact events.Fact) {
	r.flag.Apply(events.Recorded{Event: events.Event{Fact: fact}})
	r.facts = append(r.facts, fact)
}

// begin begins another life of the flag's key, off in all environments.
func (r *reversal) begin(exists bool) {
	if exists {
		r.add(events.FlagDeleted{})
	}
	r.add(r.to.FlagCreated)
	r.status()
}

func (r *reversal) status() {
	if r.flag.Status != r.to.Status {
		r.add(events.FlagStatusChanged{From: r.flag.Status, To: r.to.Status})
	}
}

func (r *reversal) fields() {
	for _, fact := range fieldChanges(&r.flag, r.to) {
		r.add(fact)
	}
	if r.to.Status != events.ActiveFlag {
		r.status()
	}
}

// environments reverts environments of a flag that has all variations.
func (r *reversal) environments(list []events.EnvironmentRef) {
	r.turnOff(list)
	r.rules(list)
	r.turnOn(list)
}

// turnOff turns the flag off in environments in which it was off at that time.
func (r *reversal) turnOff(list []events.EnvironmentRef) {
	for _, e := range list {
		if r.flag.Enabled.Has(e.ID) && !r.to.Enabled.Has(e.ID) {
			r.add(events.FlagDisabled{Environment: e})
		}
	}
}

// turnOn turns the flag on in environments in which it was on at that time.
func (r *reversal) turnOn(list []events.EnvironmentRef) {
	for _, e := range list {
		if !r.flag.Enabled.Has(e.ID) && r.to.Enabled.Has(e.ID) {
			r.add(events.FlagEnabled{Environment: e})
		}
	}
}

// rules reverts rules, fallthroughs and prerequisites.
func (r *reversal) rules(list []events.EnvironmentRef) {
	for _, e := range list {
		if change := events.ChangeRules(e, r.flag.Rules[e.ID], r.to.Rules[e.ID]); !change.Empty() {
			r.add(change)
		}
		if from, to := r.flag.FallthroughIn(e.ID), r.to.FallthroughIn(e.ID); !events.StoredEqual(from, to) {
			r.add(events.FallthroughChanged{Environment: e, From: from, To: to})
		}
		if from, to := r.flag.PrerequisitesIn(e.ID), r.to.PrerequisitesIn(e.ID); !events.StoredEqual(from, to) {
			r.add(events.PrerequisitesChanged{Environment: e, From: from, To: to})
		}
	}
}

func (r *reversal) addVariations() {
	for _, v := range r.to.Variations {
		now := r.flag.Variation(v.ID)
		if now == nil {
			r.add(events.VariationAdded{Variation: v})
			continue
		}
		updated := events.VariationUpdated{
			ID: v.ID, Name: changed(now.Name, &v.Name, equal), Value: changedValue(now.Value, v.Value),
			Description: changed(now.Description, &v.Description, equal), Weight: changed(now.Weight, &v.Weight, equal),
		}
		if updated != (events.VariationUpdated{ID: v.ID}) {
			r.add(updated)
		}
	}
}

func (r *reversal) removeVariations() {
	for _, v := range slices.Clone(r.flag.Variations) {
		if r.to.Variation(v.ID) == nil {
			r.add(events.VariationRemoved{Variation: v})
		}
	}
}

func variationIDs(list []events.Variation) (ids []string) {
	for _, v := range list {
		ids = append(ids, v.ID)
	}
	return ids
}
