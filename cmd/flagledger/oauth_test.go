package main

import "testing"

func TestOAuth(t *testing.T) {
	cases{
		"a client trades its credentials for a token and works with it": func(_ *testing.T, me *client) {
			me.createFlag("k", nil)
			machine := me.machine("flags:read", "flags:evaluate")
			machine.call("GET", flagPath("k"), nil).want(200)
			machine.evaluate("k", `{}`).want(200)
		},
	}.run(t)
}
