package evaluation

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plainNodes are nodes of a graph by key. Those that were deleted have no edges.
type plainNodes map[string]plainNode

type plainNode struct {
	edges   []edge
	changed time.Time
}

func (n plainNodes) edges(key string) iter.Seq[edge] { return slices.Values(n[key].edges) }
func (n plainNodes) changed(key string) time.Time    { return n[key].changed }
func (n plainNodes) keys() []string                  { return slices.Sorted(maps.Keys(n)) }
func (n plainNodes) graph() graph                    { return graph{}.with(plainNodes(nil), n, n.keys()...) }
func (n plainNodes) with(k string, p plainNode) (after plainNodes) {
	after = maps.Clone(n)
	after[k] = p
	return after
}

// naiveCycles returns the edges from whose end older ones lead back to their beginning.
func (n plainNodes) naiveCycles() map[ends]bool {
	older := func(a, b edge, from, of string) bool {
		if !a.since.Equal(b.since) {
			return a.since.Before(b.since)
		}
		return from < of || from == of && a.to < b.to
	}
	found := map[ends]bool{}
	for from, node := range n {
		for _, last := range node.edges {
			seen := map[string]bool{}
			var leads func(key string) bool
			leads = func(key string) bool {
				if key == from {
					return true
				}
				if seen[key] {
					return false
				}
				seen[key] = true
				return slices.ContainsFunc(n[key].edges, func(e edge) bool { return older(e, last, key, from) && leads(e.to) })
			}
			if leads(last.to) {
				found[ends{from, last.to}] = true
			}
		}
	}
	return found
}

func (n plainNodes) naiveReached() map[string]time.Time {
	found := map[string]time.Time{}
	for key, node := range n {
		if len(node.edges) == 0 {
			continue
		}
		for _, to := range reachable(successors(n), key) {
			if at := n.changed(to); at.After(found[key]) || found[key].IsZero() {
				found[key] = at
			}
		}
	}
	return found
}

// However nodes change, one by one or several at once, the graph that follows is the naive one.
func TestGraphFollowsChanges(t *testing.T) {
	cycles := 0
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}[:rapid.IntRange(2, 8).Draw(t, "keys")]
		n, g := plainNodes{}, graph{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			after := maps.Clone(n)
			changed := rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 1, 3, rapid.ID).Draw(t, "changed")
			for _, key := range changed {
				node := plainNode{changed: at(rapid.IntRange(1, 59).Draw(t, "at"))}
				switch rapid.IntRange(0, 5).Draw(t, "change") {
				case 0:
					delete(after, key)
					continue
				case 1, 2:
					node.edges = n[key].edges
				default:
					for _, to := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 3, rapid.ID).Draw(t, "to") {
						node.edges = append(node.edges, edge{to, at(rapid.IntRange(1, 20).Draw(t, "since"))})
					}
				}
				after[key] = node
			}
			before := fmt.Sprint(g)
			next := g.with(n, after, changed...)
			if fmt.Sprint(g) != before {
				t.Fatalf("the graph before has changed: %v, want %v", g, before)
			}
			n, g = after, next
			cycles += len(g.cycles)
			want := graph{n.graph().predecessors, n.naiveCycles(), n.naiveReached()}
			if fmt.Sprint(g) != fmt.Sprint(want) || fmt.Sprint(n.graph()) != fmt.Sprint(want) {
				t.Fatalf("of %v\nthe graph is %v,\nanew %v,\nwant %v", n, g, n.graph(), want)
			}
		}
	})
	if cycles == 0 {
		t.Error("there was no cycle")
	}
}

// countingNodes counts the nodes whose edges are asked for.
type countingNodes struct {
	plainNodes
	asked *int
}

func (n countingNodes) edges(key string) iter.Seq[edge] {
	*n.asked++
	return n.plainNodes.edges(key)
}

// A change costs what leads to the node, even if others are on a cycle.
func TestGraphAsksOnlyWhatLeadsToChange(t *testing.T) {
	n := plainNodes{"root": {edges: []edge{{"leaf", at(1)}}}, "leaf": {}, "other": {}}
	const count = 1000
	for i := range count {
		n[fmt.Sprint(i)] = plainNode{edges: []edge{{fmt.Sprint((i + 1) % count), at(1)}, {"other", at(1)}}}
	}
	g := n.graph()
	if len(g.cycles) != 1 {
		t.Fatalf("%v close a cycle", g.cycles)
	}
	for name, change := range map[string]plainNode{
		"of members": {changed: at(50)}, "of edges": {edges: []edge{{"other", at(2)}}, changed: at(50)},
	} {
		after, asked := n.with("leaf", change), 0
		next := g.with(countingNodes{n, &asked}, countingNodes{after, &asked}, "leaf")
		if asked > 20 || !next.newestChange["root"].Equal(at(50)) || len(next.cycles) != 1 {
			t.Errorf("a change %s asks for the edges of %d nodes: %v", name, asked, next.newestChange["root"])
		}
	}
}

// bipartite returns nodes in two halves: each of the first leads to many of the second, and some of these lead
// back.
func bipartite(nodes, edges, back int) plainNodes {
	n := plainNodes{}
	for i := range nodes {
		node := plainNode{changed: at(1)}
		for j := range edges {
			to := edge{fmt.Sprintf("b%04d", (i+j)%nodes), at(1 + j%10)}
			node.edges = append(node.edges, to)
		}
		n[fmt.Sprintf("a%04d", i)] = node
		second := plainNode{changed: at(1)}
		if i < back {
			second.edges = []edge{{fmt.Sprintf("a%04d", i*7%nodes), at(20 + i%10)}}
		}
		n[fmt.Sprintf("b%04d", i)] = second
	}
	return n
}

func BenchmarkGraph(b *testing.B) {
	for name, back := range map[string]int{"no cycle": 0, "cycles": 500} {
		n := bipartite(900, 100, back)
		b.Run(name+"/anew", func(b *testing.B) {
			for b.Loop() {
				n.graph()
			}
		})
		g := n.graph()
		for _, key := range []string{"a0000", "b0000"} {
			after := n.with(key, plainNode{edges: n[key].edges, changed: at(30)})
			b.Run(name+"/members of "+key, func(b *testing.B) {
				for b.Loop() {
					g.with(n, after, key)
				}
			})
			moved := n.with(key, plainNode{edges: append(slices.Clone(n[key].edges), edge{"a0001", at(30)})})
			b.Run(name+"/edges of "+key, func(b *testing.B) {
				for b.Loop() {
					g.with(n, moved, key)
				}
			})
		}
	}
}
