package evaluation

import (
	"iter"
	"slices"
	"sort"
	"time"
)

// Segments are the segments of a tenant at one moment, those included that were deleted while rules referred to them.
// They are immutable, so that an evaluation sees all of them at the same moment; nil has none.
type Segments struct {
	list  []*Segment // by key
	graph graph      // of the segments whose rules refer to others
}

// NewSegments returns segments, of which no two have the same key.
func NewSegments(list []*Segment) *Segments {
	return (*Segments)(nil).With(list...)
}

func (s *Segments) edges(key string) iter.Seq[edge] {
	return func(yield func(edge) bool) {
		segment, exists := s.Find(key)
		if !exists {
			return
		}
		for _, use := range segment.state.Uses {
			if !yield(edge{use.Key, use.Since}) {
				return
			}
		}
	}
}

func (s *Segments) changed(key string) (at time.Time) {
	if segment := s.find(key); segment != nil {
		at = segment.state.UpdatedAt
	}
	return at
}

// Find returns the segment with a key, and false if it does not exist.
func (s *Segments) Find(key string) (*Segment, bool) {
	found := s.find(key)
	return found, found != nil && found.state.Exists
}

// find returns the segment with a key, also a deleted one, or nil.
func (s *Segments) find(key string) *Segment {
	if s == nil {
		return nil
	}
	i := s.place(key)
	if i < len(s.list) && s.list[i].state.Key == key {
		return s.list[i]
	}
	return nil
}

func (s *Segments) place(key string) int {
	return sort.Search(len(s.list), func(i int) bool { return s.list[i].state.Key >= key })
}

// Last returns the segment with a key, also a deleted one, and false if there is none.
func (s *Segments) Last(key string) (*Segment, bool) {
	found := s.find(key)
	return found, found != nil
}

// All returns the segments by key, also deleted ones. The caller must not change them.
func (s *Segments) All() []*Segment {
	if s == nil {
		return nil
	}
	return s.list
}

// With returns the segments with some that replace those with their keys, or are added.
func (s *Segments) With(list ...*Segment) *Segments {
	if len(list) == 0 {
		return s
	}
	changed, keys := &Segments{list: slices.Clone(s.All())}, make([]string, len(list))
	for i, next := range list {
		keys[i] = next.state.Key
		if at := changed.place(keys[i]); changed.find(keys[i]) != nil {
			changed.list[at] = next
		} else {
			changed.list = slices.Insert(changed.list, at, next)
		}
	}
	changed.follow(s, keys...)
	return changed
}

// Without returns the segments without that with a key.
func (s *Segments) Without(key string) *Segments {
	if s.find(key) == nil {
		return s
	}
	changed := &Segments{list: slices.Clone(s.list)}
	i := s.place(key)
	changed.list = slices.Delete(changed.list, i, i+1)
	changed.follow(s, key)
	return changed
}

// follow makes the graph of that of the segments before some of them changed.
func (s *Segments) follow(before *Segments, changed ...string) {
	var g graph
	if before != nil {
		g = before.graph
	}
	s.graph = g.with(before, s, changed...)
}

// LeadingTo returns the key of a segment, and those of the segments whose rules refer to it, also through others.
func (s *Segments) LeadingTo(key string) []string { return ancestors(s.predecessors, key) }

// predecessors returns the keys of the segments whose rules refer to one.
func (s *Segments) predecessors(key string) []string {
	if s == nil {
		return nil
	}
	return s.graph.predecessorsOf(key)
}

// Reach returns the segments that some keys lead to, directly or through others, by key. Of a missing one it has the
// key alone.
func (s *Segments) Reach(keys []string) []string { return reachable(successors(s), keys...) }
