package evaluation

import (
	"fmt"
	"slices"
	"strings"
)

// Unusable says by key which of some segments the rules of a segment, or of a flag for an empty key, cannot refer to:
// because they do not exist, close a cycle, or make a chain of more segments than maxChain.
func (s *Segments) Unusable(from string, keys []string, maxChain int) map[string]string {
	unusable := map[string]string{}
	var before []string // the longest chain that leads to from, which ends it
	if from != "" {
		referring := s.referring()
		before = longestChain(from, func(key string) []string { return referring[key] })
		slices.Reverse(before)
	}
	for _, key := range keys {
		if _, exists := s.Find(key); !exists && key != from {
			unusable[key] = "must be the key of a segment"
			continue
		}
		if from == "" {
			continue
		}
		if path := s.path(key, from, map[string]bool{}); path != nil {
			unusable[key] = "closes a cycle: " + arrows(append([]string{from}, path...))
			continue
		}
		chain := append(slices.Clone(before), longestChain(key, s.referred)...)
		if len(chain) > maxChain {
			unusable[key] = fmt.Sprintf("makes a chain of %d segments, at most %d: %s", len(chain), maxChain, arrows(chain))
		}
	}
	return unusable
}

// Problem is a reference to a segment that has no meaning of its own.
type Problem struct {
	Code ProblemCode
	Key  string // of the segment
}

// ProblemCode says what is wrong with a reference.
type ProblemCode string

// The codes.
const (
	SegmentMissing ProblemCode = "segment_missing" // the segment does not exist: nobody is in it
	SegmentCycle   ProblemCode = "segment_cycle"   // the reference closes a cycle: nobody matches by it
)

// Problems returns what is wrong with the segments that some keys lead to, by key.
func (s *Segments) Problems(keys []string) (problems []Problem) {
	for _, key := range s.Reach(keys) {
		segment, exists := s.Find(key)
		if !exists {
			problems = append(problems, Problem{SegmentMissing, key})
			continue
		}
		for _, use := range segment.state.Uses {
			problem := Problem{SegmentCycle, use.Key}
			if _, cycle := s.closesCycle(key, use.Key); cycle && !slices.Contains(problems, problem) {
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

func arrows(keys []string) string { return strings.Join(keys, " → ") }

// referred returns the segments that a segment's rules refer to.
func (s *Segments) referred(key string) (keys []string) {
	if segment, ok := s.Find(key); ok {
		for _, use := range segment.state.Uses {
			keys = append(keys, use.Key)
		}
	}
	return keys
}

// longestChain returns the longest chain that begins with a key. In a cycle, which only changes at once on several
// nodes make, it may be a shorter one.
func longestChain(key string, next func(string) []string) []string {
	known := map[string][]string{} // nil while it is being found
	var longest func(key string) []string
	longest = func(key string) []string {
		if chain, seen := known[key]; seen {
			return chain
		}
		known[key] = nil
		var rest []string
		for _, after := range next(key) {
			if chain := longest(after); len(chain) > len(rest) {
				rest = chain
			}
		}
		known[key] = append([]string{key}, rest...)
		return known[key]
	}
	return longest(key)
}

// path returns the keys on a way from one segment to another, nil if there is none.
func (s *Segments) path(from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	seen[from] = true
	for _, next := range s.referred(from) {
		if seen[next] {
			continue
		}
		if rest := s.path(next, to, seen); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}
