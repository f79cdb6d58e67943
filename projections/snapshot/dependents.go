package snapshot

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
)

// dependency is what flags depend on directly in an environment: a flag that they require, or a segment.
type dependency struct {
	environmentID string
	flagKey       string // empty for a segment
	segmentKey    string
}

// dependents has the flags that depend directly on each flag and segment.
type dependents struct {
	mu       sync.RWMutex
	flags    map[dependency]map[string]bool // their keys
	required map[string]int                 // how many dependencies each flag is, and of how many flags
}

// add notes that a flag has some dependencies.
func (d *dependents) add(flagKey string, list []dependency) {
	if len(list) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flags == nil {
		d.flags, d.required = map[dependency]map[string]bool{}, map[string]int{}
	}
	for _, on := range list {
		if d.flags[on] == nil {
			d.flags[on] = map[string]bool{}
		}
		if !d.flags[on][flagKey] && on.flagKey != "" {
			d.required[on.flagKey]++
		}
		d.flags[on][flagKey] = true
	}
}

// remove notes that a flag no longer has some dependencies.
func (d *dependents) remove(flagKey string, list []dependency) {
	if len(list) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, on := range list {
		if d.flags[on][flagKey] && on.flagKey != "" {
			if d.required[on.flagKey]--; d.required[on.flagKey] == 0 {
				delete(d.required, on.flagKey)
			}
		}
		if delete(d.flags[on], flagKey); len(d.flags[on]) == 0 {
			delete(d.flags, on)
		}
	}
}

// removeEnvironment forgets all dependencies in an environment.
func (d *dependents) removeEnvironment(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for on, flags := range d.flags {
		if on.environmentID != id {
			continue
		}
		if on.flagKey != "" {
			if d.required[on.flagKey] -= len(flags); d.required[on.flagKey] == 0 {
				delete(d.required, on.flagKey)
			}
		}
		delete(d.flags, on)
	}
}

// clear forgets all flags, and reports whether there were any.
func (d *dependents) clear() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	had := len(d.flags) > 0
	d.flags, d.required = nil, nil
	return had
}

// of returns the sorted keys of the flags that have one of some dependencies.
func (d *dependents) of(list ...dependency) []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	flags := map[string]bool{}
	for _, on := range list {
		maps.Copy(flags, d.flags[on])
	}
	return slices.Sorted(maps.Keys(flags))
}

// each calls visit with the keys of the flags that have a dependency, until visit returns false.
func (d *dependents) each(on dependency, visit func(flagKey string) bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for key := range d.flags[on] {
		if !visit(key) {
			return
		}
	}
}

// all returns the sorted keys of the flags that have dependencies.
func (d *dependents) all() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	flags := map[string]bool{}
	for _, keys := range d.flags {
		maps.Copy(flags, keys)
	}
	return slices.Sorted(maps.Keys(flags))
}

// segments returns the keys of the segments that flags depend on.
func (d *dependents) segments() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	keys := map[string]bool{}
	for on := range d.flags {
		if on.segmentKey != "" {
			keys[on.segmentKey] = true
		}
	}
	return slices.Collect(maps.Keys(keys))
}

// requires reports whether a flag requires this one in any environment.
func (d *dependents) requires(flagKey string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.required[flagKey] > 0
}

// requiredFlags returns the keys of the flags that others require.
func (d *dependents) requiredFlags() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Collect(maps.Keys(d.required))
}

// dependencies returns what a flag depends on directly in all environments; nothing for nil.
func (f *Flag) dependencies() (list []dependency) {
	if f == nil {
		return nil
	}
	for id := range f.Targeted() {
		for _, key := range f.Segments(id) {
			list = append(list, dependency{environmentID: id, segmentKey: key})
		}
		for _, p := range f.Prerequisites(id) {
			list = append(list, dependency{environmentID: id, flagKey: p.FlagKey})
		}
	}
	return list
}

// Dependencies returns what the tenant's flags depend on at this moment.
func (t *Tenant) Dependencies() *evaluation.Dependencies { return t.dependencies.Load() }

// FlagWithDependencies finds a flag by its key, and what the tenant's flags depend on at the same moment: that of
// another moment might give an answer that no moment gives.
func (t *Tenant) FlagWithDependencies(key string) (f *Flag, d *evaluation.Dependencies, ok bool) {
	for {
		d = t.dependencies.Load()
		f, ok = t.flags.Load(key)
		if t.dependencies.Load() == d && same(d.Find(key), f) {
			return f, d, ok
		}
	}
}

// same reports whether a flag is the one that others require, if any do.
func same(required *evaluation.Flag, f *Flag) bool {
	switch {
	case required == nil:
		return true
	case f == nil:
		return !required.State().Exists
	default:
		return required == &f.Flag
	}
}

// showFlag shows a flag in place of before; nil stands for none. last is the state of a deleted one. What the flag
// requires is there before it, and what it does no longer require is there until it has changed.
func (t *Tenant) showFlag(key string, before, after *Flag, last *state.Flag) {
	had, has := before.dependencies(), after.dependencies()
	t.dependents.add(key, has)
	var shown []*evaluation.Flag
	for _, on := range has {
		if on.flagKey == "" || on.flagKey == key || t.Dependencies().Find(on.flagKey) != nil {
			continue
		}
		if required, ok := t.flags.Load(on.flagKey); ok {
			shown = append(shown, &required.Flag)
		}
	}
	if t.dependents.requires(key) || t.Dependencies().Find(key) != nil {
		switch {
		case after != nil:
			shown = append(shown, &after.Flag)
		case before != nil || last.Version > 0 || t.Dependencies().Find(key) != nil:
			shown = append(shown, evaluation.Deleted(last))
		}
	}
	if len(shown) > 0 {
		t.dependencies.Store(t.Dependencies().WithRequired(shown...))
	}
	if after == nil {
		t.flags.Delete(key)
	} else {
		t.flags.Store(key, after)
	}
	had = slices.DeleteFunc(had, func(on dependency) bool { return slices.Contains(has, on) })
	t.dependents.remove(key, had)
	var unused, segments []string
	for _, on := range had {
		if on.segmentKey != "" {
			segments = append(segments, on.segmentKey)
		}
		if on.flagKey != "" && !t.dependents.requires(on.flagKey) && t.Dependencies().Find(on.flagKey) != nil {
			unused = append(unused, on.flagKey)
		}
	}
	if len(unused) > 0 {
		t.dependencies.Store(t.Dependencies().WithoutRequired(unused...))
	}
	t.dropUnused(segments...)
}

// removeEnvironment drops what flags depend on in a deleted environment alone.
func (t *Tenant) removeEnvironment(id string) {
	t.dependents.removeEnvironment(id)
	var unused []string
	for _, f := range t.Dependencies().Required() {
		if key := f.State().Key; !t.dependents.requires(key) {
			unused = append(unused, key)
		}
	}
	if len(unused) > 0 {
		t.dependencies.Store(t.Dependencies().WithoutRequired(unused...))
	}
	var segments []string
	for _, s := range t.Segments().All() {
		segments = append(segments, s.State().Key)
	}
	t.dropUnused(segments...)
}

// showRequired shows the flags that others require, of a tenant whose flags are there.
func (t *Tenant) showRequired() {
	var shown []*evaluation.Flag
	for _, key := range t.dependents.requiredFlags() {
		if f, ok := t.flags.Load(key); ok {
			shown = append(shown, &f.Flag)
		}
	}
	if len(shown) > 0 {
		t.dependencies.Store(t.Dependencies().WithRequired(shown...))
	}
}

// Dependent is a flag that requires another one in an environment.
type Dependent struct {
	FlagKey      string
	Environment  events.EnvironmentRef
	Prerequisite events.Prerequisite // what it demands
}

// Dependents returns the flags that require a flag directly, by key and in the order of environments.
func (t *Tenant) Dependents(key string) (list []Dependent) {
	if !t.dependents.requires(key) {
		return nil
	}
	for _, e := range t.Environments() {
		for _, flagKey := range t.dependents.of(dependency{environmentID: e.ID, flagKey: key}) {
			f, ok := t.Flag(flagKey)
			if !ok {
				continue
			}
			for _, p := range f.Prerequisites(e.ID) {
				if p.FlagKey == key {
					list = append(list, Dependent{flagKey, e, p.Prerequisite})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Dependent) int { return strings.Compare(a.FlagKey, b.FlagKey) })
	return list
}

// RequiredBy counts the flags that require a flag directly in an environment.
func (t *Tenant) RequiredBy(key, environmentID string) int {
	t.dependents.mu.RLock()
	defer t.dependents.mu.RUnlock()
	return len(t.dependents.flags[dependency{environmentID: environmentID, flagKey: key}])
}

// UnusablePrerequisites says by key which of some flags a flag cannot require all together in an environment, in place
// of those that it requires: because they do not exist, close a cycle, or exceed a limit. It may miss a concurrent
// change: evaluation gives the prerequisites a meaning all the same.
func (t *Tenant) UnusablePrerequisites(flagKey, environmentID string, keys []string) map[string]string {
	return evaluation.FlagsIn{
		Exists: func(key string) bool {
			_, exists := t.Flag(key)
			return exists
		},
		Requires: func(key string) []string {
			f, ok := t.Flag(key)
			if !ok {
				return nil
			}
			return f.Requires(environmentID)
		},
		Dependents: func(key string) []string {
			return t.dependents.of(dependency{environmentID: environmentID, flagKey: key})
		},
	}.Unusable(flagKey, keys)
}

// MaxNamedFlags limits the flags that a change names, and an event of a stream. If more have changed, fetching all is
// cheaper.
const MaxNamedFlags = 500

// DependentsChange is a change of a segment or of a flag, and which flags it may change because they depend on it.
type DependentsChange struct {
	SegmentKey string // empty for a flag
	Flags      []ChangedDependent
	Many       bool // there are too many flags to name
}

// ChangedDependent is a flag that depends on another one, or on a segment, in an environment, also through others.
type ChangedDependent struct {
	Key           string
	EnvironmentID string
	Version       events.Revision
	ClientSide    bool
}

// segmentChange finds the flags that a change of a segment concerns.
func (t *Tenant) segmentChange(key string) *DependentsChange {
	change, through := &DependentsChange{SegmentKey: key}, t.Segments().LeadingTo(key)
	for _, e := range t.Environments() {
		list := make([]dependency, len(through))
		for i, segmentKey := range through {
			list[i] = dependency{environmentID: e.ID, segmentKey: segmentKey}
		}
		if t.addDependents(change, list...); change.Many {
			break
		}
	}
	return change
}

// flagChange finds the flags that a change of a flag in some environments concerns beside itself; nil for none.
func (t *Tenant) flagChange(key string, in func(environmentID string) bool) *DependentsChange {
	if !t.dependents.requires(key) {
		return nil
	}
	change := &DependentsChange{}
	for _, e := range t.Environments() {
		if in(e.ID) && !change.Many {
			t.addDependents(change, dependency{environmentID: e.ID, flagKey: key})
		}
	}
	if len(change.Flags) == 0 && !change.Many {
		return nil
	}
	return change
}

// addDependents adds the flags to a change that have one of some dependencies in one environment, also through others.
func (t *Tenant) addDependents(to *DependentsChange, list ...dependency) {
	before, seen := len(to.Flags), map[string]bool{}
	for len(list) > 0 && !to.Many {
		on := list[0]
		list = list[1:]
		t.dependents.each(on, func(key string) bool {
			f, ok := t.Flag(key)
			if !ok || seen[key] {
				return true
			}
			if len(to.Flags) == MaxNamedFlags {
				to.Flags, to.Many = nil, true
				return false
			}
			seen[key] = true
			to.Flags = append(to.Flags, ChangedDependent{key, on.environmentID, f.Version(), f.State().ClientSide})
			list = append(list, dependency{environmentID: on.environmentID, flagKey: key})
			return true
		})
	}
	if !to.Many {
		slices.SortFunc(to.Flags[before:], func(a, b ChangedDependent) int { return strings.Compare(a.Key, b.Key) })
	}
}

// In returns the part of the change for one environment, or all of it for an empty id; nil if it changes no flag there.
func (c *DependentsChange) In(environmentID string) *DependentsChange {
	return c.where(func(f ChangedDependent) bool { return environmentID == "" || f.EnvironmentID == environmentID })
}

// ClientSide returns the part of the change that browsers see, nil if there is none.
func (c *DependentsChange) ClientSide() *DependentsChange {
	return c.where(func(f ChangedDependent) bool { return f.ClientSide })
}

// where returns the part of the change for some flags, nil if there are none.
func (c *DependentsChange) where(is func(ChangedDependent) bool) *DependentsChange {
	part := &DependentsChange{SegmentKey: c.SegmentKey, Many: c.Many}
	for _, f := range c.Flags {
		if is(f) {
			part.Flags = append(part.Flags, f)
		}
	}
	if len(part.Flags) == 0 && !part.Many {
		return nil
	}
	return part
}

// DependenciesChanged returns when a segment or a flag last changed that a flag leads to, as recorded. It is zero if
// there is none.
func (t *Tenant) DependenciesChanged(flagKey string) (newest time.Time) {
	f, d, ok := t.FlagWithDependencies(flagKey)
	if !ok {
		return newest
	}
	note := func(at time.Time) {
		if at.After(newest) {
			newest = at
		}
	}
	for id := range f.Targeted() {
		segments, required := f.Segments(id), d.Reach(&f.Flag, id)
		if len(segments)+len(required) == 0 || !t.hasEnvironment(id) {
			continue
		}
		for _, key := range required {
			if required := d.Find(key); required != nil {
				note(required.State().UpdatedAt)
				segments = append(segments[:len(segments):len(segments)], required.Segments(id)...)
			}
		}
		for _, key := range d.Segments().Reach(segments) {
			if segment, ok := d.Segments().Last(key); ok {
				note(segment.State().UpdatedAt)
			}
		}
	}
	return newest
}
