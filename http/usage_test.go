package http_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// usage is what a call for it shows.
func usage(c *nodetest.Client) (flags, evaluations, users int) {
	c.Service.T.Helper()
	a := c.Call("GET", "/api/v1/tenants/"+c.Tenant+"/usage", nil).Want(200)
	nodetest.Members(c.Service.T, "usage", a.Object(), "flags", "evaluations", "users")
	var body struct{ Flags, Evaluations, Users int }
	a.Decode(&body)
	return body.Flags, body.Evaluations, body.Users
}

func uses(c *nodetest.Client, flags, evaluations, users int) {
	c.Service.T.Helper()
	f, e, u := usage(c)
	nodetest.Same(c.Service.T, "flags, evaluations and users", []int{f, e, u}, []int{flags, evaluations, users})
}

func TestUsage(t *testing.T) {
	nodetest.Cases{
		"each flag that is evaluated counts": func(_ *testing.T, me *nodetest.Client) {
			uses(me, 0, 0, 1)
			me.CreateFlag("on", nil)
			me.CreateFlag("split", map[string]any{"type": "string", "flag_variations": []map[string]any{{"name": "a", "value": "A", "weight": 1}}})
			me.Call("POST", nodetest.FlagPath("split", "/enable"), nil).Want(200)
			uses(me, 2, 0, 1)
			me.Evaluate("on", `{}`).Want(200)
			uses(me, 2, 1, 1)
			me.Call("POST", "/api/v1/flags/evaluate", `{"targetingKey":"u"}`).Want(200)
			uses(me, 2, 3, 1)
			me.Call("POST", "/api/v1/flags/evaluate", `{"targetingKey":"u","flagKeys":["split","none"]}`).Want(200)
			uses(me, 2, 4, 1)
			me.Evaluate("none", `{}`).Want(404)
			me.Evaluate("split", `{}`).Want(422)
			uses(me, 2, 4, 1)
			callOFREP(me, "on", `{}`).Want(200)
			callOFREP(me, "none", `{}`).Want(404)
			callOFREP(me, "split", `{}`).Want(400)
			uses(me, 2, 5, 1)
			tag := callOFREP(me, "", `{"targetingKey":"u"}`).Want(200).Header.Get("ETag")
			uses(me, 2, 7, 1)
			callOFREP(me, "", `{"targetingKey":"u"}`, "If-None-Match", tag).Want(304)
			uses(me, 2, 9, 1)
			callOFREP(me, "", `{}`).Want(200)
			uses(me, 2, 10, 1)
			me.Call("DELETE", nodetest.FlagPath("on"), nil).Want(204)
			uses(me, 1, 10, 1)
			uses(me.NewTenant("another"), 0, 0, 1)
		},
		"members count, those who are invited do not": func(_ *testing.T, me *nodetest.Client) {
			uses(me.Join("viewer"), 0, 0, 2)
			me.Call("POST", "/api/v1/tenants/"+me.Tenant+"/users", map[string]string{"email": nodetest.Address(), "role": "viewer"}).Want(201)
			uses(me, 0, 0, 2)
		},
	}.Run(t)
}

func TestUsageOfSeveralNodes(t *testing.T) {
	t.Parallel()
	nodetest.RunOnce(t)
	first := nodetest.New(t)
	me := first.SignUp("me@example.com")
	me.CreateFlag("f", nil)
	second := first.SecondNode()
	there := *me
	there.Service = second
	evaluate := func(n int) {
		for range n {
			me.Evaluate("f", `{}`).Want(200)
			there.Evaluate("f", `{}`).Want(200)
		}
	}
	evaluate(3)
	first.Eventually("each node shows both nodes' evaluations", func() bool {
		_, here, _ := usage(me)
		_, other, _ := usage(&there)
		return here == 6 && other == 6
	})
	evaluate(2)
	second.Node.Stop()
	uses(me, 1, 10, 1)
	third := *me
	third.Service = first.SecondNode()
	first.Node.Stop()
	uses(&third, 1, 10, 1)
	third.Evaluate("f", `{}`).Want(200)
	uses(&third, 1, 11, 1)
}

func TestUsageDuringAnOutage(t *testing.T) {
	t.Parallel()
	nodetest.RunOnce(t)
	dir, p := nodetest.OwnPostgres(t)
	s := nodetest.On(t, p.URL())
	me := s.SignUp("me@example.com")
	me.CreateFlag("f", nil)
	me.Evaluate("f", `{}`).Want(200)
	end := nodetest.Outage(t, dir)
	s.Eventually("the database is gone", func() bool { return me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/usage", nil).Status == 503 })
	for range 10 {
		me.Evaluate("f", `{}`).Want(200)
	}
	end()
	s.Eventually("the database is back", func() bool { return me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/usage", nil).Status == 200 })
	uses(me, 1, 11, 1)
	other := *me
	other.Service = nodetest.Start(t, p.URL(), s.Config, nodetest.Log(t))
	s.Eventually("another node hears of it", func() bool {
		_, n, _ := usage(&other)
		return n == 11
	})
}
