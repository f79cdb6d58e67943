package evaluation

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"flagledger/events/state"
)

// Dependencies are what the flags of a tenant depend on at one moment, beside themselves: the segments, and the flags
// that other flags require. They are immutable, so that an evaluation sees all at the same moment; nil has none.
type Dependencies struct {
	segments *Segments
	// required are the flags that others require, by key. Those included that were deleted: answers depend on when.
	required []*Flag
	// graphs are of the required flags, by environment id. An environment in which none requires others has no graph.
	graphs map[string]*graph
}

// NewDependencies returns dependencies. No two of the flags have the same key.
func NewDependencies(segments *Segments, required ...*Flag) *Dependencies {
	return (&Dependencies{segments: segments}).WithRequired(required...)
}

// Segments returns the segments.
func (d *Dependencies) Segments() *Segments {
	if d == nil {
		return nil
	}
	return d.segments
}

// WithSegments returns the dependencies with other segments.
func (d *Dependencies) WithSegments(segments *Segments) *Dependencies {
	changed := Dependencies{}
	if d != nil {
		changed = *d
	}
	changed.segments = segments
	return &changed
}

// Required returns the flags that others require, by key, also deleted ones. The caller must not change them.
func (d *Dependencies) Required() []*Flag {
	if d == nil {
		return nil
	}
	return d.required
}

// Find returns a flag that others require, also a deleted one; nil if there is none with the key.
func (d *Dependencies) Find(key string) *Flag {
	if d == nil {
		return nil
	}
	low, high := 0, len(d.required)
	for low < high { // without the calls of a comparison, as each evaluation of a required flag is here
		middle := (low + high) / 2
		f := d.required[middle]
		switch of := f.state.Key; {
		case of == key:
			return f
		case of < key:
			low = middle + 1
		default:
			high = middle
		}
	}
	return nil
}

func (d *Dependencies) place(key string) (int, bool) {
	return slices.BinarySearchFunc(d.Required(), key, func(f *Flag, key string) int {
		return strings.Compare(f.state.Key, key)
	})
}

// WithRequired returns the dependencies with required flags that replace those with their keys, or are added.
func (d *Dependencies) WithRequired(flags ...*Flag) *Dependencies {
	return d.replace(flags, nil)
}

// WithoutRequired returns the dependencies without the flags with some keys.
func (d *Dependencies) WithoutRequired(keys ...string) *Dependencies {
	return d.replace(nil, keys)
}

func (d *Dependencies) replace(added []*Flag, removed []string) *Dependencies {
	changed := &Dependencies{segments: d.Segments(), required: slices.Clone(d.Required())}
	var graphs map[string]*graph
	if d != nil {
		graphs = d.graphs
	}
	moved := map[string][]string{} // keys of flags that change the graphs of environments
	for _, f := range added {
		var before *Flag
		if i, ok := changed.place(f.state.Key); ok {
			before, changed.required[i] = changed.required[i], f
		} else {
			changed.required = slices.Insert(changed.required, i, f)
		}
		noteMoved(moved, graphs, f.state.Key, before, f)
	}
	for _, key := range removed {
		if i, ok := changed.place(key); ok {
			noteMoved(moved, graphs, key, changed.required[i], nil)
			changed.required = slices.Delete(changed.required, i, i+1)
		}
	}
	changed.graphs = maps.Clone(graphs)
	for environmentID, keys := range moved {
		var g graph
		if before := graphs[environmentID]; before != nil {
			g = *before
		}
		g = g.with(requiredIn{d, environmentID}, requiredIn{changed, environmentID}, keys...)
		if len(g.newestChange) == 0 {
			delete(changed.graphs, environmentID)
			continue
		}
		if changed.graphs == nil {
			changed.graphs = map[string]*graph{}
		}
		changed.graphs[environmentID] = &g
	}
	return changed
}

// noteMoved notes a flag in the environments whose graphs its change changes. before and after may be nil for none.
func noteMoved(moved map[string][]string, graphs map[string]*graph, key string, before, after *Flag) {
	note := func(environmentID string) {
		same := before.edgesChanged(environmentID).Equal(after.edgesChanged(environmentID)) &&
			slices.Equal(slices.Collect(before.edges(environmentID)), slices.Collect(after.edges(environmentID)))
		if keys := moved[environmentID]; !same && (len(keys) == 0 || keys[len(keys)-1] != key) {
			moved[environmentID] = append(keys, key)
		}
	}
	for environmentID := range graphs {
		note(environmentID)
	}
	for _, f := range []*Flag{before, after} {
		if f == nil {
			continue
		}
		for i := range f.environments {
			if len(f.environments[i].required()) > 0 {
				note(f.environments[i].id)
			}
		}
	}
}

// requiredIn are the required flags in an environment, as nodes of a graph.
type requiredIn struct {
	*Dependencies
	environmentID string
}

func (n requiredIn) edges(key string) iter.Seq[edge] {
	return n.Find(key).edges(n.environmentID)
}

func (n requiredIn) changed(key string) time.Time {
	return n.Find(key).edgesChanged(n.environmentID)
}

// edges yields the flags that a flag requires in an environment; none for nil and for a deleted flag.
func (f *Flag) edges(environmentID string) iter.Seq[edge] {
	return func(yield func(edge) bool) {
		if f == nil {
			return
		}
		for _, p := range f.Prerequisites(environmentID) {
			if !yield(edge{p.FlagKey, p.Since}) {
				return
			}
		}
	}
}

// edgesChanged returns when the flags last changed that a flag requires in an environment; zero for nil. For a deleted
// flag it is when it was deleted.
func (f *Flag) edgesChanged(environmentID string) time.Time {
	switch {
	case f == nil:
		return time.Time{}
	case !f.state.Exists:
		return f.state.UpdatedAt
	}
	if at := f.state.RequiredChanged[environmentID]; at.After(f.state.CreatedAt) {
		return at
	}
	return f.state.CreatedAt
}

// Deleted returns what stays of a flag while others require it, of the state after its deletion.
func Deleted(s *state.Flag) *Flag {
	last := state.Flag{CreatedVersion: s.CreatedVersion, Version: s.Version, UpdatedAt: s.UpdatedAt}
	last.TenantID, last.Key = s.TenantID, s.Key
	return &Flag{state: &last, version: s.Version}
}

// Requires returns the keys of the flags that the flag requires in an environment, none for nil.
func (f *Flag) Requires(environmentID string) (keys []string) {
	for e := range f.edges(environmentID) {
		keys = append(keys, e.to)
	}
	return keys
}

// Reach returns the required flags that a flag leads to in an environment, directly or through others, by key. Of a
// missing one it has the key alone.
func (d *Dependencies) Reach(f *Flag, environmentID string) []string {
	keys := f.Requires(environmentID)
	if len(keys) == 0 {
		return nil
	}
	return reachable(successors(requiredIn{d, environmentID}), keys...)
}

// requiredGraph returns the graph of the required flags in an environment, nil if none of them requires others.
func (d *Dependencies) requiredGraph(environmentID string) *graph {
	if d == nil || len(d.graphs) == 0 {
		return nil
	}
	return d.graphs[environmentID]
}
