package evaluation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// limits are the limits of what a node of a graph leads to.
type limits struct {
	what  string // the plural of the nodes' name
	chain int    // nodes in a row, the first included
}

// unusable says by key which of some nodes that exist cannot be led to from another: because that closes a cycle or
// exceeds a limit. leading returns the nodes that lead to a node directly.
func unusable(n nodes, from string, keys []string, leading func(key string) []string, most limits) map[string]string {
	found := map[string]string{}
	before := longestChain(from, leading) // ends with from once it is reversed
	slices.Reverse(before)
	for _, key := range keys {
		if path := path(n, key, from, map[string]bool{}); path != nil {
			found[key] = "closes a cycle: " + arrows(append([]string{from}, path...))
			continue
		}
		chain := append(slices.Clone(before), longestChain(key, func(key string) []string { return led(n, key) })...)
		if len(chain) > most.chain {
			found[key] = fmt.Sprintf("makes a chain of %d %s, at most %d: %s", len(chain), most.what, most.chain, arrows(chain))
		}
	}
	return found
}

// Unusable says by key which of some segments the rules of a segment, or of a flag for an empty key, cannot refer to:
// because they do not exist, close a cycle, or make a chain of more segments than maxChain.
func (s *Segments) Unusable(from string, keys []string, maxChain int) map[string]string {
	found := map[string]string{}
	var known []string
	for _, key := range keys {
		if _, exists := s.Find(key); exists || key == from {
			known = append(known, key)
		} else {
			found[key] = "must be the key of a segment"
		}
	}
	if from != "" {
		maps.Copy(found, unusable(s, from, known, incoming(s), limits{what: "segments", chain: maxChain}))
	}
	return found
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
			if s.graph.closesCycle(key, use.Key) && !slices.Contains(problems, problem) {
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

func arrows(keys []string) string { return strings.Join(keys, " → ") }

// led returns the nodes that a node leads to directly.
func led(n nodes, key string) (keys []string) {
	for e := range n.edges(key) {
		keys = append(keys, e.to)
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

// path returns the keys on a way from one node to another, nil if there is none.
func path(n nodes, from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	seen[from] = true
	for e := range n.edges(from) {
		if seen[e.to] {
			continue
		}
		if rest := path(n, e.to, to, seen); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}
