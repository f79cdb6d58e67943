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
	// predecessors are the sorted keys of the nodes that lead to a node directly.
	predecessors map[string][]string
	// cycles are the edges that close a cycle: in each cycle the latest. Whoever recorded it may not have known of the
	// cycle, as another node of the service may have recorded the other edges at the same time.
	cycles map[ends]bool
	// newestChange is when the newest of the nodes changed that a node leads to, with itself, for those with edges.
	// Answers depend on all of them: a cycle may come or go by one that is not asked.
	newestChange map[string]time.Time
}

// ends are the two ends of an edge.
type ends struct{ from, to string }

// with returns the graph after a change of nodes that makes after of before. It costs what leads to these nodes, and if
// their edges change also the nodes on cycles with them.
func (g graph) with(before, after nodes, changed ...string) graph {
	var moved []string // nodes with other edges
	for _, key := range changed {
		if !slices.Equal(slices.Collect(before.edges(key)), slices.Collect(after.edges(key))) {
			moved = append(moved, key)
		}
	}
	if len(moved) > 0 {
		g.findPredecessors(before, after, moved)
		g.findCycles(before, after, moved)
	}
	g.findNewestChange(after, changed)
	return g
}

// predecessorsOf returns the sorted keys of the nodes that lead to a node directly.
func (g *graph) predecessorsOf(key string) []string { return g.predecessors[key] }

func (g *graph) findPredecessors(before, after nodes, moved []string) {
	g.predecessors = maps.Clone(g.predecessors)
	if g.predecessors == nil {
		g.predecessors = map[string][]string{}
	}
	own := map[string]bool{} // lists that the former graph does not have
	change := func(to string, change func(list []string) []string) {
		list := g.predecessors[to]
		if !own[to] {
			own[to], list = true, slices.Clone(list)
		}
		if g.predecessors[to] = change(list); len(g.predecessors[to]) == 0 {
			delete(g.predecessors, to)
		}
	}
	for _, key := range moved {
		for e := range before.edges(key) {
			change(e.to, func(list []string) []string {
				if i, found := slices.BinarySearch(list, key); found {
					return slices.Delete(list, i, i+1)
				}
				return list
			})
		}
		for e := range after.edges(key) {
			change(e.to, func(list []string) []string {
				if i, found := slices.BinarySearch(list, key); !found {
					return slices.Insert(list, i, key)
				}
				return list
			})
		}
	}
}

// closesCycle reports whether an edge closes a cycle.
func (g *graph) closesCycle(from, to string) bool {
	return len(g.cycles) > 0 && from != "" && g.cycles[ends{from, to}]
}

// newest returns when the newest of the nodes changed that a node leads to, with itself, which changed at a time.
func (g *graph) newest(key string, changed time.Time) time.Time {
	if len(g.newestChange) == 0 {
		return changed
	}
	if at, ok := g.newestChange[key]; ok {
		return at
	}
	return changed
}

// findCycles finds the edges that close a cycle among the nodes that may be on a cycle with nodes whose edges changed,
// before or after that. No other edge comes to close one, or ceases to.
func (g *graph) findCycles(before, after nodes, moved []string) {
	within := map[string]bool{}
	affected := ancestors(g.predecessorsOf, moved...)
	for _, n := range []nodes{before, after} {
		reached := map[string]bool{}
		for _, key := range reachable(successors(n), moved...) {
			reached[key] = true
		}
		for _, key := range affected {
			if reached[key] {
				within[key] = true
			}
		}
	}
	old := g.cycles
	g.cycles = nil
	set := func(e ends) {
		if g.cycles == nil {
			g.cycles = map[ends]bool{}
		}
		g.cycles[e] = true
	}
	for e := range old {
		if !within[e.from] || !within[e.to] {
			set(e)
		}
	}
	since := map[ends]time.Time{}
	for from := range within {
		for e := range after.edges(from) {
			if within[e.to] {
				since[ends{from, e.to}] = e.since
			}
		}
	}
	byAge := slices.SortedFunc(maps.Keys(since), func(a, b ends) int {
		return cmp.Or(since[a].Compare(since[b]), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	number, edges := map[string]int{}, make([]agedEdge, len(byAge))
	for age, e := range byAge {
		edges[age] = agedEdge{numberOf(number, e.from), numberOf(number, e.to), age, e}
	}
	closing(edges, set)
}

// numberOf returns the number of a node, from 0 on.
func numberOf[K comparable](numbers map[K]int, key K) int {
	n, known := numbers[key]
	if !known {
		n = len(numbers)
		numbers[key] = n
	}
	return n
}

// agedEdge is an edge between numbered nodes. The oldest has age 0.
type agedEdge struct {
	tail, head, age int
	ends
}

// closing calls found for each edge that lies on a cycle with older edges alone: its ends are in the same component of
// the graph of all edges up to it. The edges are by age.
//
// It looks at the older half of the edges. Within a component of that, newer edges close a cycle, and the older ones
// are looked at alone. The others are looked at with each component as one node.
func closing(edges []agedEdge, found func(ends)) {
	var split func(list []agedEdge, low, high int)
	split = func(list []agedEdge, low, high int) { // low and high limit the ages that are yet to be decided
		if low == high || !slices.ContainsFunc(list, func(e agedEdge) bool { return e.age >= low }) {
			return
		}
		middle, number := (low+high-1)/2, map[int]int{}
		for i := range list {
			list[i].tail, list[i].head = numberOf(number, list[i].tail), numberOf(number, list[i].head)
		}
		next := make([][]int, len(number))
		for _, e := range list {
			if e.age <= middle {
				next[e.tail] = append(next[e.tail], e.head)
			}
		}
		of, _ := components(next)
		var inside, between []agedEdge
		for _, e := range list {
			switch same := of[e.tail] == of[e.head]; {
			case !same:
				e.tail, e.head = of[e.tail], of[e.head]
				between = append(between, e)
			case e.age > middle || e.age == low && low == middle:
				found(e.ends)
			default:
				inside = append(inside, e)
			}
		}
		if low < middle {
			split(inside, low, middle+1)
		}
		split(between, middle+1, high)
	}
	split(edges, 0, len(edges))
}

// components returns the number of the strongly connected component of each node, and how many there are. Each has a
// higher number than those that it leads to.
func components(next [][]int) (of []int, count int) {
	of = make([]int, len(next))
	order, lowest := make([]int, len(next)), make([]int, len(next)) // as Tarjan's algorithm has them
	visited := 0
	var open []int
	var visit func(n int)
	visit = func(n int) {
		visited++
		order[n], lowest[n], of[n] = visited, visited, -1
		open = append(open, n)
		for _, m := range next[n] {
			if order[m] == 0 {
				visit(m)
			}
			if of[m] < 0 {
				lowest[n] = min(lowest[n], lowest[m])
			}
		}
		if lowest[n] < order[n] {
			return
		}
		for i := len(open) - 1; ; i-- {
			of[open[i]] = count
			if open[i] == n {
				open = open[:i]
				break
			}
		}
		count++
	}
	for n := range next {
		if order[n] == 0 {
			visit(n)
		}
	}
	return of, count
}

// findNewestChange finds newestChange of nodes that have changed, and of those that lead to them. That of all others is
// known.
func (g *graph) findNewestChange(n nodes, changed []string) {
	affected, number := ancestors(g.predecessorsOf, changed...), map[string]int{}
	g.newestChange = maps.Clone(g.newestChange)
	for _, key := range affected {
		delete(g.newestChange, key)
		numberOf(number, key)
	}
	next, newest := make([][]int, len(affected)), make([]time.Time, len(affected))
	for i, key := range affected {
		newest[i] = n.changed(key)
		for e := range n.edges(key) {
			if to, ok := number[e.to]; ok {
				next[i] = append(next[i], to)
			} else {
				newest[i] = later(newest[i], g.newest(e.to, n.changed(e.to)))
			}
		}
	}
	of, count := components(next)
	within, ofComponent := make([][]int, count), make([]time.Time, count)
	for i := range affected {
		within[of[i]] = append(within[of[i]], i)
	}
	for c, list := range within { // after those that it leads to
		for _, i := range list {
			for _, to := range next[i] {
				newest[i] = later(newest[i], ofComponent[of[to]])
			}
			ofComponent[c] = later(ofComponent[c], newest[i])
		}
	}
	for i, key := range affected {
		for range n.edges(key) {
			if g.newestChange == nil {
				g.newestChange = map[string]time.Time{}
			}
			g.newestChange[key] = ofComponent[of[i]]
			break
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// ancestors returns some keys, and the keys of the nodes that lead to them, also through others. predecessors returns
// those that lead to a node directly.
func ancestors(predecessors func(key string) []string, keys ...string) (found []string) {
	seen := map[string]bool{}
	add := func(keys []string) {
		for _, key := range keys {
			if !seen[key] {
				seen[key] = true
				found = append(found, key)
			}
		}
	}
	add(keys)
	for i := 0; i < len(found); i++ {
		add(predecessors(found[i]))
	}
	return found
}

// successors returns a function that returns the keys that a node leads to directly.
func successors(n nodes) func(key string) []string {
	return func(key string) (keys []string) {
		for e := range n.edges(key) {
			keys = append(keys, e.to)
		}
		return keys
	}
}

// reachable returns the nodes that some keys lead to, directly or through others, with themselves, by key. Of a missing
// one it has the key alone. next returns the keys that a node leads to directly.
func reachable(next func(key string) []string, keys ...string) (reached []string) {
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
