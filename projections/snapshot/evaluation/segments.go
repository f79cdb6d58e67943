package evaluation

import (
	"iter"
	"slices"
	"sort"
	"strings"
	"time"

	"flagledger/events/state"
)

// Segments are the segments of a tenant at one moment, those included that were deleted while rules referred to them.
// They are immutable, so that an evaluation sees all of them at the same moment; nil has none.
type Segments struct {
	list  []*Segment // by key
	graph graph      // of the segments whose rules refer to others
}

// NewSegments returns segments, of which no two have the same key.
func NewSegments(list []*Segment) *Segments {
	s := &Segments{list: slices.SortedFunc(slices.Values(list), func(a, b *Segment) int {
		return strings.Compare(a.state.Key, b.state.Key)
	})}
	s.graph = newGraph(s)
	return s
}

func (s *Segments) keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, segment := range s.All() {
			if !yield(segment.state.Key) {
				return
			}
		}
	}
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

// With returns the segments with one that replaces that with its key, or is added.
func (s *Segments) With(next *Segment) *Segments {
	if s == nil {
		s = &Segments{}
	}
	key := next.state.Key
	before := s.find(key)
	changed := &Segments{list: slices.Clone(s.list)}
	if i := s.place(key); before != nil {
		changed.list[i] = next
	} else {
		changed.list = slices.Insert(changed.list, i, next)
	}
	var uses []state.SegmentUse
	existed := false
	if before != nil {
		uses, existed = before.state.Uses, before.state.Exists
	}
	changed.graph = s.graph.with(changed, key, existed != next.state.Exists || !slices.Equal(uses, next.state.Uses))
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
	changed.graph = s.graph.with(changed, key, true)
	return changed
}

// LeadingTo returns the key of a segment, and those of the segments whose rules refer to it, also through others.
func (s *Segments) LeadingTo(key string) []string { return leadingTo(key, incoming(s)) }

// Reach returns the segments that some keys lead to, directly or through others, by key. Of a missing one it has the
// key alone.
func (s *Segments) Reach(keys []string) []string { return reach(led(s), keys...) }
