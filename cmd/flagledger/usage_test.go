package main

import (
	"testing"
)

// usage is what a call for it shows.
func (c *client) usage() (flags, evaluations, users int) {
	c.s.t.Helper()
	a := c.call("GET", "/api/v1/tenants/"+c.tenant+"/usage", nil).want(200)
	members(c.s.t, "usage", a.object(), "flags", "evaluations", "users")
	var body struct{ Flags, Evaluations, Users int }
	a.decode(&body)
	return body.Flags, body.Evaluations, body.Users
}

func (c *client) uses(flags, evaluations, users int) {
	c.s.t.Helper()
	f, e, u := c.usage()
	same(c.s.t, "flags, evaluations and users", []int{f, e, u}, []int{flags, evaluations, users})
}

func TestUsage(t *testing.T) {
	cases{
		"each flag that is evaluated counts": func(_ *testing.T, me *client) {
			me.uses(0, 0, 1)
			me.createFlag("on", nil)
			me.createFlag("split", map[string]any{"type": "string", "flag_variations": []map[string]any{{"name": "a", "value": "A", "weight": 1}}})
			me.call("POST", flagPath("split", "/enable"), nil).want(200)
			me.uses(2, 0, 1)
			me.evaluate("on", `{}`).want(200)
			me.uses(2, 1, 1)
			me.call("POST", "/api/v1/flags/evaluate", `{"targetingKey":"u"}`).want(200)
			me.uses(2, 3, 1)
			me.call("POST", "/api/v1/flags/evaluate", `{"targetingKey":"u","flagKeys":["split","none"]}`).want(200)
			me.uses(2, 4, 1)
			me.evaluate("none", `{}`).want(404)
			me.evaluate("split", `{}`).want(422)
			me.uses(2, 4, 1)
			me.ofrep("on", `{}`).want(200)
			me.ofrep("none", `{}`).want(404)
			me.ofrep("split", `{}`).want(400)
			me.uses(2, 5, 1)
			tag := me.ofrep("", `{"targetingKey":"u"}`).want(200).header.Get("ETag")
			me.uses(2, 7, 1)
			me.ofrep("", `{"targetingKey":"u"}`, "If-None-Match", tag).want(304)
			me.uses(2, 9, 1)
			me.ofrep("", `{}`).want(200)
			me.uses(2, 10, 1)
			me.call("DELETE", flagPath("on"), nil).want(204)
			me.uses(1, 10, 1)
			me.newTenant("another").uses(0, 0, 1)
		},
		"members count, those who are invited do not": func(_ *testing.T, me *client) {
			me.join("viewer").uses(0, 0, 2)
			me.call("POST", "/api/v1/tenants/"+me.tenant+"/users", map[string]string{"email": address(), "role": "viewer"}).want(201)
			me.uses(0, 0, 2)
		},
	}.run(t)
}

func TestUsageOfSeveralNodes(t *testing.T) {
	t.Parallel()
	first := newService(t)
	me := first.signUp("me@example.com")
	me.createFlag("f", nil)
	second := first.secondNode()
	there := *me
	there.s = second
	evaluate := func(n int) {
		for range n {
			me.evaluate("f", `{}`).want(200)
			there.evaluate("f", `{}`).want(200)
		}
	}
	evaluate(3)
	first.eventually("each node shows both nodes' evaluations", func() bool {
		_, here, _ := me.usage()
		_, other, _ := there.usage()
		return here == 6 && other == 6
	})
	evaluate(2)
	second.node.stop()
	me.uses(1, 10, 1)
	third := *me
	third.s = first.secondNode()
	first.node.stop()
	third.uses(1, 10, 1)
	third.evaluate("f", `{}`).want(200)
	third.uses(1, 11, 1)
}

func TestUsageDuringAnOutage(t *testing.T) {
	dir, p := ownPostgres(t)
	s := serviceOn(t, p.URL())
	me := s.signUp("me@example.com")
	me.createFlag("f", nil)
	me.evaluate("f", `{}`).want(200)
	end := outage(t, dir)
	s.eventually("the database is gone", func() bool { return me.call("GET", "/api/v1/tenants/"+me.tenant+"/usage", nil).status == 503 })
	for range 10 {
		me.evaluate("f", `{}`).want(200)
	}
	end()
	s.eventually("the database is back", func() bool { return me.call("GET", "/api/v1/tenants/"+me.tenant+"/usage", nil).status == 200 })
	me.uses(1, 11, 1)
	other := *me
	other.s = serviceWith(t, p.URL(), s.config, testLog(t))
	s.eventually("another node hears of it", func() bool {
		_, n, _ := other.usage()
		return n == 11
	})
}
