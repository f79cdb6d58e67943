package evaluation

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"
)

// nodes are what a graph is of: segments that refer to others, or flags that require others in an environment.
type nodes interface {
	// keys yields the keys of all nodes, in order.
	keys() iter.Seq[string]
	// edges yields the edges from a node; none from one that does not exist.
	edges(key string) iter.Seq[edge]
	// changed returns when a node last changed in what the graph depends on, also when it was deleted.
	changed(key string) time.Time
}

// edge leads to a node since a recorded time.
type edge struct {
	to    string
	since time.Time
}

// graph says which edges close a cycle, and when what nodes lead to last changed. It is immutable.
type graph struct {
	// cycles are the edges that close a cycle: in each cycle the latest. Whoever recorded it may not have known of the
	// cycle, as another node of the service may have recorded the other edges at the same time.
	cycles map[ends]bool
	// reached is when the newest of the nodes changed that a node leads to, with itself, for those with edges. Answers
	// depend on all of them: a cycle may come or go by one that is not asked.
	reached map[string]time.Time
}

// ends are the two ends of an edge.
type ends struct{ from, to string }

func newGraph(n nodes) (g graph) {
	g.findCycles(n)
	g.findReached(n, slices.Collect(n.keys())...)
	return g
}

// with returns the graph after a change of a node that n has. newEdges says that edges may have come or gone, by it or
// as it was deleted or created.
func (g graph) with(n nodes, key string, newEdges bool) graph {
	if newEdges || len(g.cycles) > 0 {
		g.findCycles(n)
	}
	g.findReached(n, leadingTo(key, incoming(n))...)
	return g
}

// closesCycle reports whether an edge closes a cycle.
func (g *graph) closesCycle(from, to string) bool {
	return len(g.cycles) > 0 && from != "" && g.cycles[ends{from, to}]
}

// newest returns when the newest of the nodes changed that a node leads to, with itself, which changed at a time.
func (g *graph) newest(key string, changed time.Time) time.Time {
	if len(g.reached) == 0 {
		return changed
	}
	if at, ok := g.reached[key]; ok {
		return at
	}
	return changed
}

func (g *graph) findCycles(n nodes) {
	g.cycles = nil
	within := inCycles(n)
	for from := range within {
		for e := range n.edges(from) {
			if within[e.to] && leadsBack(n, from, e) {
				if g.cycles == nil {
					g.cycles = map[ends]bool{}
				}
				g.cycles[ends{from, e.to}] = true
			}
		}
	}
}

// inCycles returns the keys of nodes that lie on a cycle, or between two: what is left without the nodes that lead to
// none of these, or that none of these leads to.
func inCycles(n nodes) map[string]bool {
	left := map[string]bool{}
	for key := range n.keys() {
		for range n.edges(key) {
			left[key] = true
			break
		}
	}
	for {
		leads, led := map[string]bool{}, map[string]bool{}
		for key := range left {
			for e := range n.edges(key) {
				if left[e.to] {
					leads[key], led[e.to] = true, true
				}
			}
		}
		before := len(left)
		maps.DeleteFunc(left, func(key string, _ bool) bool { return !leads[key] || !led[key] })
		if len(left) == before {
			return left
		}
	}
}

// leadsBack reports whether older edges lead from the end of an edge to its beginning.
func leadsBack(n nodes, from string, last edge) bool {
	older := func(key string, e edge) bool {
		return cmp.Or(e.since.Compare(last.since), cmp.Compare(key, from), cmp.Compare(e.to, last.to)) < 0
	}
	seen := map[string]bool{last.to: true}
	for next := []string{last.to}; len(next) > 0; {
		key := next[len(next)-1]
		if next = next[:len(next)-1]; key == from {
			return true
		}
		for e := range n.edges(key) {
			if !seen[e.to] && older(key, e) {
				seen[e.to] = true
				next = append(next, e.to)
			}
		}
	}
	return false
}

// findReached finds when the newest of the nodes changed that some nodes lead to. That of others is known.
func (g *graph) findReached(n nodes, keys ...string) {
	g.reached = maps.Clone(g.reached)
	var open []string
	for _, key := range keys {
		delete(g.reached, key)
		for range n.edges(key) {
			if g.reached == nil {
				g.reached = map[string]time.Time{}
			}
			g.reached[key] = n.changed(key)
			open = append(open, key)
			break
		}
	}
	for changed := true; changed; { // as often as the longest chain is long, at most
		changed = false
		for _, key := range open {
			for e := range n.edges(key) {
				if at := g.newest(e.to, n.changed(e.to)); at.After(g.reached[key]) {
					g.reached[key], changed = at, true
				}
			}
		}
	}
}

// incoming returns the keys of the nodes that lead to each node directly.
func incoming(n nodes) func(key string) []string {
	from := map[string][]string{}
	for key := range n.keys() {
		for e := range n.edges(key) {
			from[e.to] = append(from[e.to], key)
		}
	}
	return func(key string) []string { return from[key] }
}

// leadingTo returns a key, and the keys of the nodes that lead to it, also through others. incoming returns those that
// lead to a node directly.
func leadingTo(key string, incoming func(key string) []string) []string {
	leading, seen := []string{key}, map[string]bool{key: true}
	for i := 0; i < len(leading); i++ {
		for _, from := range incoming(leading[i]) {
			if !seen[from] {
				seen[from] = true
				leading = append(leading, from)
			}
		}
	}
	return leading
}

// led returns a function that returns the keys that a node leads to directly.
func led(n nodes) func(key string) []string {
	return func(key string) (keys []string) {
		for e := range n.edges(key) {
			keys = append(keys, e.to)
		}
		return keys
	}
}

// reach returns the nodes that some keys lead to, directly or through others, with themselves, by key. Of a missing one
// it has the key alone. next returns the keys that a node leads to directly.
func reach(next func(key string) []string, keys ...string) (reached []string) {
	seen := map[string]bool{}
	for open := slices.Clone(keys); len(open) > 0; {
		key := open[len(open)-1]
		if open = open[:len(open)-1]; seen[key] {
			continue
		}
		seen[key] = true
		reached = append(reached, key)
		open = append(open, next(key)...)
	}
	slices.Sort(reached)
	return reached
}
