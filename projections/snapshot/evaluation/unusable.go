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
	all   int    // other nodes together; 0 for any number
}

// unusable says by key which of some nodes that exist cannot be led to from another, in place of what that leads to:
// because they close a cycle or exceed a limit. out and in return what a node leads to and what leads to it directly.
func unusable(out, in func(key string) []string, from string, keys []string, most limits) map[string]string {
	found := map[string]string{}
	before := longestChains(in)(from) // ends with from once it is reversed
	slices.Reverse(before)
	above, isAbove := ancestors(in, from), map[string]bool{}
	for _, key := range above {
		isAbove[key] = true
	}
	longest := longestChains(out)
	for _, key := range keys {
		if isAbove[key] {
			if path := path(out, key, from, map[string]bool{}); path != nil {
				found[key] = "closes a cycle: " + arrows(append([]string{from}, path...))
				continue
			}
		}
		chain := append(slices.Clone(before), longest(key)...)
		if len(chain) > most.chain {
			found[key] = fmt.Sprintf("makes a chain of %d %s, at most %d: %s", len(chain), most.what, most.chain, arrows(chain))
		}
	}
	if most.all == 0 || len(found) > 0 || len(keys) == 0 {
		return found
	}
	next := func(key string) []string {
		if key == from {
			return keys
		}
		return out(key)
	}
	if key, n := firstBeyond(next, above, most.all); n > 0 {
		found[keys[len(keys)-1]] = fmt.Sprintf("makes %s lead to %d other %s, at most %d", key, n, most.what, most.all)
	}
	return found
}

// firstBeyond returns the first of some nodes that leads to more other nodes than a limit, and to how many; 0 if there
// is none. It asks twice for what each node leads to.
func firstBeyond(next func(key string) []string, keys []string, most int) (string, int) {
	all, number := reachable(next, keys...), map[string]int{}
	for _, key := range all {
		numberOf(number, key)
	}
	out := make([][]int, len(all))
	for i, key := range all {
		for _, to := range next(key) {
			out[i] = append(out[i], number[to])
		}
	}
	seenFrom := make([]int, len(all)) // from which of the keys a node was seen last, counted from 1
	for i, key := range keys {
		count := 0
		for open := []int{number[key]}; len(open) > 0; {
			n := open[len(open)-1]
			if open = open[:len(open)-1]; seenFrom[n] == i+1 {
				continue
			}
			seenFrom[n] = i + 1
			count++
			open = append(open, out[n]...)
		}
		if count-1 > most {
			return key, count - 1
		}
	}
	return "", 0
}

// FlagsIn are the flags of a tenant in an environment.
type FlagsIn struct {
	Exists func(key string) bool
	// Requires and Dependents return the keys of the flags that one requires, and of those that require it.
	Requires, Dependents func(key string) []string
}

// Unusable says by key which of some flags a flag cannot require all together, in place of those that it requires:
// because they do not exist, close a cycle, or exceed a limit.
func (f FlagsIn) Unusable(from string, keys []string) map[string]string {
	found := map[string]string{}
	var known []string
	for _, key := range keys {
		if key == from || f.Exists(key) {
			known = append(known, key)
		} else {
			found[key] = "must be the key of a flag"
		}
	}
	maps.Copy(found, unusable(f.Requires, f.Dependents, from, known, limits{"flags", maxFlagChain, maxRequired}))
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
		maps.Copy(found, unusable(successors(s), s.predecessors, from, known, limits{what: "segments", chain: maxChain}))
	}
	return found
}

func arrows(keys []string) string { return strings.Join(keys, " → ") }

// longestChains returns a function that returns the longest chain that begins with a key. It remembers what it has
// found. In a cycle, which only changes at once on several nodes make, it may be a shorter one.
func longestChains(next func(string) []string) (longest func(key string) []string) {
	known := map[string][]string{} // nil while it is being found
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
	return longest
}

// path returns the keys on a way from one node to another, nil if there is none.
func path(next func(key string) []string, from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	seen[from] = true
	for _, key := range next(from) {
		if seen[key] {
			continue
		}
		if rest := path(next, key, to, seen); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}
