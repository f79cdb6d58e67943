package evaluation

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"flagledger/events/state"
)

// Segments are the segments of a tenant at one moment, those included that were deleted while rules referred to them.
// They are immutable, so that an evaluation sees all of them at the same moment; nil has none.
type Segments struct {
	list []*Segment // by key
	// cycles are the uses that close a cycle, with the time of the newest segment in it.
	cycles map[segmentUse]time.Time
	// reached is when the newest of the segments changed that a segment leads to, with itself, for those that refer to
	// others. Answers depend on all of them: a cycle may come or go by one that is not asked.
	reached map[string]time.Time
}

// segmentUse is the reference of a segment's rules to another segment.
type segmentUse struct{ from, to string }

// NewSegments returns segments, of which no two have the same key.
func NewSegments(list []*Segment) *Segments {
	s := &Segments{list: slices.SortedFunc(slices.Values(list), func(a, b *Segment) int {
		return strings.Compare(a.state.Key, b.state.Key)
	})}
	s.findCycles()
	var keys []string
	for _, segment := range s.list {
		keys = append(keys, segment.state.Key)
	}
	s.findReached(keys...)
	return s
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
	changed := &Segments{list: slices.Clone(s.list), cycles: s.cycles, reached: s.reached}
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
	if len(s.cycles) > 0 || existed != next.state.Exists || !slices.Equal(uses, next.state.Uses) {
		changed.findCycles()
	}
	changed.findReached(changed.LeadingTo(key)...)
	return changed
}

// Without returns the segments without that with a key.
func (s *Segments) Without(key string) *Segments {
	if s.find(key) == nil {
		return s
	}
	changed := &Segments{list: slices.Clone(s.list), cycles: s.cycles, reached: s.reached}
	i := s.place(key)
	changed.list = slices.Delete(changed.list, i, i+1)
	if len(s.cycles) > 0 {
		changed.findCycles()
	}
	changed.findReached(changed.LeadingTo(key)...)
	return changed
}

// closesCycle reports whether a use closes a cycle, and since when the cycle is as it is.
func (s *Segments) closesCycle(from, to string) (since time.Time, cycle bool) {
	if s == nil || len(s.cycles) == 0 || from == "" {
		return since, false
	}
	since, cycle = s.cycles[segmentUse{from, to}]
	return since, cycle
}

// findCycles finds the uses that close a cycle: in each cycle the latest. The segments before it in the log may not
// know of it, as another node may have recorded the other uses at the same time.
func (s *Segments) findCycles() {
	s.cycles = nil
	within := s.inCycles()
	for from := range within {
		for _, use := range s.find(from).state.Uses {
			if !within[use.Key] {
				continue
			}
			if newest, closes := s.wayBack(from, use); closes {
				if s.cycles == nil {
					s.cycles = map[segmentUse]time.Time{}
				}
				s.cycles[segmentUse{from, use.Key}] = newest
			}
		}
	}
}

// inCycles returns the keys of segments that lie on a cycle, or between two: what is left without the segments that
// refer to none of these, or that none of these refers to.
func (s *Segments) inCycles() map[string]bool {
	left := map[string]bool{}
	for _, segment := range s.list {
		if segment.state.Exists && len(segment.state.Uses) > 0 {
			left[segment.state.Key] = true
		}
	}
	for {
		referred := map[string]bool{}
		refers := map[string]bool{}
		for key := range left {
			for _, use := range s.find(key).state.Uses {
				if left[use.Key] {
					refers[key], referred[use.Key] = true, true
				}
			}
		}
		before := len(left)
		for key := range left {
			if !refers[key] || !referred[key] {
				delete(left, key)
			}
		}
		if len(left) == before {
			return left
		}
	}
}

// wayBack reports whether a use closes a cycle: older uses lead from its end to its beginning. newest is when the
// newest of the segments that they lead through changed.
func (s *Segments) wayBack(from string, last state.SegmentUse) (newest time.Time, closes bool) {
	older := func(from string, use state.SegmentUse, than segmentUse) bool {
		return cmp.Or(use.Since.Compare(last.Since), cmp.Compare(from, than.from), cmp.Compare(use.Key, than.to)) < 0
	}
	seen, next := map[string]bool{}, []string{last.Key}
	for len(next) > 0 {
		key := next[len(next)-1]
		next = next[:len(next)-1]
		segment := s.find(key)
		if seen[key] || segment == nil || !segment.state.Exists {
			continue
		}
		seen[key] = true
		if segment.state.UpdatedAt.After(newest) {
			newest = segment.state.UpdatedAt
		}
		if key == from {
			closes = true
			continue
		}
		for _, use := range segment.state.Uses {
			if older(key, use, segmentUse{from, last.Key}) {
				next = append(next, use.Key)
			}
		}
	}
	return newest, closes
}

// findReached finds when the newest of the segments changed that some segments lead to. That of others is known.
func (s *Segments) findReached(keys ...string) {
	s.reached = maps.Clone(s.reached)
	var open []*Segment
	for _, key := range keys {
		segment := s.find(key)
		if segment == nil || !segment.state.Exists || len(segment.state.Uses) == 0 {
			delete(s.reached, key)
			continue
		}
		if s.reached == nil {
			s.reached = map[string]time.Time{}
		}
		s.reached[key] = segment.state.UpdatedAt
		open = append(open, segment)
	}
	for changed := true; changed; { // as often as the longest chain is long, at most
		changed = false
		for _, segment := range open {
			newest := s.newest(segment)
			for _, use := range segment.state.Uses {
				if other := s.find(use.Key); other != nil && s.newest(other).After(newest) {
					newest, changed = s.newest(other), true
				}
			}
			s.reached[segment.state.Key] = newest
		}
	}
}

// newest returns when the newest of the segments changed that a segment leads to, with itself.
func (s *Segments) newest(segment *Segment) time.Time {
	if at, ok := s.reached[segment.state.Key]; ok {
		return at
	}
	return segment.state.UpdatedAt
}

// LeadingTo returns the key of a segment, and those of the segments whose rules refer to it, also through others.
func (s *Segments) LeadingTo(key string) []string {
	leading, seen, referring := []string{key}, map[string]bool{key: true}, s.referring()
	for i := 0; i < len(leading); i++ {
		for _, user := range referring[leading[i]] {
			if !seen[user] {
				seen[user] = true
				leading = append(leading, user)
			}
		}
	}
	return leading
}

// referring returns the keys of the segments whose rules refer to each segment.
func (s *Segments) referring() map[string][]string {
	users := map[string][]string{}
	for _, segment := range s.All() {
		if segment.state.Exists {
			for _, use := range segment.state.Uses {
				users[use.Key] = append(users[use.Key], segment.state.Key)
			}
		}
	}
	return users
}

// Reach returns the segments that some keys lead to, directly or through others, by key. Of a missing one it has the
// key alone.
func (s *Segments) Reach(keys []string) (reached []string) {
	seen := map[string]bool{}
	for next := slices.Clone(keys); len(next) > 0; {
		key := next[len(next)-1]
		if next = next[:len(next)-1]; seen[key] {
			continue
		}
		seen[key] = true
		reached = append(reached, key)
		if segment, ok := s.Find(key); ok {
			for _, use := range segment.state.Uses {
				next = append(next, use.Key)
			}
		}
	}
	slices.Sort(reached)
	return reached
}
