package systemtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"flagledger/cmd/flagledger/nodetest"
)

func TestTwoNodesAreOneService(t *testing.T) { nodetest.BothEngines(t, testTwoNodesAreOneService) }

func testTwoNodesAreOneService(t *testing.T) {
	t.Parallel()
	first := nodetest.New(t)
	second := first.SecondNode()
	me := first.SignUp("me@example.com")
	there := *me
	there.Service = second

	// Each write is made on one node and read on both at once: on its own, and on the other after that has received it.
	nodes := []*nodetest.Client{me, &there}
	for i := range 20 {
		key := fmt.Sprintf("flag-%d", i)
		here, other := nodes[i%2], nodes[(i+1)%2]
		here.CreateFlag(key, nil)
		here.Call("POST", nodetest.FlagPath(key, "/enable"), nil).Want(200)
		if got := here.Call("GET", nodetest.FlagPath(key), nil).Want(200).Object(); got["enabled"] != true {
			t.Errorf("the node that wrote does not show it: %v", got)
		}
		if n := len(here.Call("GET", nodetest.FlagPath(key, "/history"), nil).Want(200).List()); n != 2 {
			t.Errorf("the node that wrote shows %d entries of the history, want 2", n)
		}
		first.Eventually("the other node serves it", func() bool {
			a := other.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{}`)
			return a.Status == 200 && a.Object()["value"] == true
		})
	}
	t.Run("what one made the other builds upon at once", func(*testing.T) {
		for i := range 20 {
			here, other := nodes[i%2], nodes[(i+1)%2]
			project, path := here.CreateProject("p")
			key := fmt.Sprintf("of-project-%d", i)
			if i%4 < 2 {
				other.Call("POST", nodetest.ProjectFlagsPath(project), map[string]string{"key": key, "type": "boolean"}).Want(201)
			} else {
				other.CreateFlag(key, map[string]any{"projectId": project})
			}
			here.Call("DELETE", path, nil).Refused(409)
			other.Call("DELETE", nodetest.ProjectFlagsPath(project, "/", key), nil).Want(204)
			here.Call("DELETE", path, nil).Want(204)
		}
	})
	t.Run("what they serve of a flag counts together", func(t *testing.T) {
		const german, french = `{"attributes":{"country":"DE"}}`, `{"attributes":{"country":"FR"}}`
		for key, onTheOther := range map[string]string{"same": german, "by-turns": french} {
			me.CreateEnabledFlag(key, nil)
			me.SetRules(key, `{"rules":[{"conditions":[{"attribute":"country","op":"in","values":["DE"]}],"serve":{"value":false}}]}`).
				Want(200)
			first.Eventually("the other node has the rule", func() bool {
				a := there.Call("POST", nodetest.FlagPath(key, "/evaluate?explain=true"), german) // does not count
				return a.Status == 200 && a.Object()["reason"] == "RULE_MATCH"
			})
			for range 3 {
				me.Evaluate(key, german).Want(200)
				there.Evaluate(key, onTheOther).Want(200)
			}
			first.Eventually("both have written down what they served", func() bool {
				return there.Call("GET", nodetest.FlagPath(key, "/metrics"), nil).Want(200).Object()["evaluations"] == 6.0
			})
			first.Exec(
				`update read.flags set created_at = created_at - interval '40 days', updated_at = updated_at - interval '40 days' where tenant_id = $1 and key = $2`,
				me.Tenant, key,
			)
		}
		for _, c := range nodes {
			list := c.Call("GET", "/api/v1/cleanup", nil).Want(200).List()
			nodetest.Same(t, "flags that can go", nodetest.Column(list, "flagKey"), []any{"same"})
			nodetest.Same(t, "what can stand for it", list[0]["outcome"],
				map[string]any{"variationId": nil, "variationName": nil, "value": false})
		}
	})
	t.Run("a session that ends on one ends on the other", func(*testing.T) {
		me.Call("POST", "/api/v1/auth/logout", nil).Want(200)
		first.Eventually("the other node refuses the token", func() bool {
			return there.Call("GET", "/api/v1/flags", nil).Status == 401
		})
	})
}

// A stopping node hands its projectors over.
func TestTheOtherNodeTakesOver(t *testing.T) { nodetest.BothEngines(t, testTheOtherNodeTakesOver) }

func testTheOtherNodeTakesOver(t *testing.T) {
	t.Parallel()
	first := nodetest.New(t)
	me := first.SignUp("me@example.com")
	second := first.SecondNode()
	there := *me
	there.Service = second
	first.Node.Stop()
	began := time.Now()
	for i := range 5 {
		key := fmt.Sprintf("flag-%d", i)
		there.CreateFlag(key, nil)
		second.Eventually("the read model shows it",
			func() bool { return there.Call("GET", nodetest.FlagPath(key), nil).Status == 200 })
	}
	t.Logf("taken over within %v", time.Since(began))
}

// BenchmarkOtherNode measures the time from an acknowledged change on one node until another node serves it.
func BenchmarkOtherNode(b *testing.B) {
	first := nodetest.New(b)
	second := first.SecondNode()
	me := first.SignUp("me@example.com")
	there := *me
	there.Service = second
	me.CreateFlag("f", nil)
	var took nodetest.Samples
	on := false
	for b.Loop() {
		on = !on
		me.Call("POST", nodetest.FlagPath("f", map[bool]string{true: "/enable", false: "/disable"}[on]), nil).Want(200)
		acknowledged := time.Now()
		for there.Call("POST", nodetest.FlagPath("f", "/evaluate"), `{}`).Want(200).Object()["enabled"] != on {
		}
		took.Add(time.Since(acknowledged))
	}
	slices.Sort(took.List)
	took.Report(b, 50)
	took.Report(b, 99)
}
