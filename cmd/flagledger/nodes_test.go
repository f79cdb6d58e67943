package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestTwoNodesAreOneService(t *testing.T) {
	t.Parallel()
	first := newService(t)
	second := first.secondNode()
	me := first.signUp("me@example.com")
	there := *me
	there.s = second

	// Each write is made on one node and read on both at once: its own, and the other one once that has heard of it.
	nodes := []*client{me, &there}
	for i := range 20 {
		key := fmt.Sprintf("flag-%d", i)
		here, other := nodes[i%2], nodes[(i+1)%2]
		here.createFlag(key, nil)
		here.call("POST", flagPath(key, "/enable"), nil).want(200)
		if got := here.call("GET", flagPath(key), nil).want(200).object(); got["enabled"] != true {
			t.Errorf("the node that wrote does not show it: %v", got)
		}
		if n := len(here.call("GET", flagPath(key, "/history"), nil).want(200).list()); n != 2 {
			t.Errorf("the node that wrote shows %d entries of the history, want 2", n)
		}
		first.eventually("the other node serves it", func() bool {
			a := other.call("POST", flagPath(key, "/evaluate"), `{}`)
			return a.status == 200 && a.object()["value"] == true
		})
	}
	t.Run("what one made the other builds upon at once", func(*testing.T) {
		for i := range 20 {
			here, other := nodes[i%2], nodes[(i+1)%2]
			project, path := here.createProject("p")
			key := fmt.Sprintf("of-project-%d", i)
			if i%4 < 2 {
				other.call("POST", projectFlags(project), map[string]string{"key": key, "type": "boolean"}).want(201)
			} else {
				other.createFlag(key, map[string]any{"projectId": project})
			}
			here.call("DELETE", path, nil).refused(409)
			other.call("DELETE", projectFlags(project, "/", key), nil).want(204)
			here.call("DELETE", path, nil).want(204)
		}
	})
	t.Run("a session that ends on one ends on the other", func(*testing.T) {
		me.call("POST", "/api/v1/auth/logout", nil).want(200)
		first.eventually("the other node refuses the token", func() bool {
			return there.call("GET", "/api/v1/flags", nil).status == 401
		})
	})
}

// A node that ends hands its projectors on.
func TestTheOtherNodeTakesOver(t *testing.T) {
	t.Parallel()
	first := newService(t)
	me := first.signUp("me@example.com")
	second := first.secondNode()
	there := *me
	there.s = second
	first.node.stop()
	began := time.Now()
	for i := range 5 {
		key := fmt.Sprintf("flag-%d", i)
		there.createFlag(key, nil)
		second.eventually("the read model shows it", func() bool { return there.call("GET", flagPath(key), nil).status == 200 })
	}
	t.Logf("taken over within %v", time.Since(began))
}

// BenchmarkOtherNode is the time from an acknowledged change on one node to another node's serving it.
func BenchmarkOtherNode(b *testing.B) {
	first := newService(b)
	second := first.secondNode()
	me := first.signUp("me@example.com")
	there := *me
	there.s = second
	me.createFlag("f", nil)
	var took samples
	on := false
	for b.Loop() {
		on = !on
		me.call("POST", flagPath("f", map[bool]string{true: "/enable", false: "/disable"}[on]), nil).want(200)
		acknowledged := time.Now()
		for there.call("POST", flagPath("f", "/evaluate"), `{}`).want(200).object()["enabled"] != on {
		}
		took.add(time.Since(acknowledged))
	}
	slices.Sort(took.list)
	took.report(b, 50)
	took.report(b, 99)
}
