package evaluation

import "slices"

// Problem is a reference to a segment or a flag that has no meaning of its own.
type Problem struct {
	Code ProblemCode
	Key  string // of the segment or the flag
}

// ProblemCode says what is wrong with a reference.
type ProblemCode string

// The codes.
const (
	SegmentMissing      ProblemCode = "segment_missing"      // the segment does not exist: nobody is in it
	SegmentCycle        ProblemCode = "segment_cycle"        // the reference closes a cycle: nobody matches by it
	PrerequisiteMissing ProblemCode = "prerequisite_missing" // the flag does not exist, so it is not on
	PrerequisiteCycle   ProblemCode = "prerequisite_cycle"   // the prerequisite closes a cycle, so it is unmet
	PrerequisiteLimit   ProblemCode = "prerequisite_limit"   // the flag is one too many, so its prerequisite is unmet
)

// Problems returns what is wrong with the segments and the flags that a flag leads to in an environment.
func (d *Dependencies) Problems(f *Flag, environmentID string) (problems []Problem) {
	segments, required := f.Segments(environmentID), f.Requires(environmentID)
	if len(segments) == 0 && len(required) == 0 {
		return nil
	}
	flags := d.Reach(f, environmentID)
	add := func(code ProblemCode, key string) {
		if problem := (Problem{code, key}); !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	var prerequisites []Problem
	for _, key := range flags {
		other := d.Find(key)
		if other == nil || !other.state.Exists {
			prerequisites = append(prerequisites, Problem{PrerequisiteMissing, key})
			continue
		}
		segments = append(segments[:len(segments):len(segments)], other.Segments(environmentID)...)
	}
	for _, problem := range d.Segments().Problems(segments) {
		add(problem.Code, problem.Key)
	}
	for _, problem := range prerequisites {
		add(problem.Code, problem.Key)
	}
	if len(required) == 0 {
		return problems
	}
	var g graph
	if in := d.requiredGraph(environmentID); in != nil {
		g = *in
	}
	open := func(key string) (keys []string) { // without the edges that close a cycle
		from := d.Find(key)
		if key == f.state.Key {
			from = f
		}
		for e := range from.edges(environmentID) {
			if g.closesCycle(key, e.to) {
				add(PrerequisiteCycle, e.to)
			} else {
				keys = append(keys, e.to)
			}
		}
		return keys
	}
	if chain := longestChains(open)(f.state.Key); len(chain) > maxFlagChain {
		add(PrerequisiteLimit, chain[maxFlagChain])
	} else if len(flags) > maxRequired {
		add(PrerequisiteLimit, flags[maxRequired])
	}
	return problems
}

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
