package main

import "testing"

func TestAFlagIsCreatedAndServed(t *testing.T) {
	t.Parallel()
	me := newService(t).signUp("me@example.com")
	created := me.createFlag("new-checkout", nil)
	if got := me.call("GET", flagPath("new-checkout"), nil).want(200).object(); got["id"] != created["id"] {
		t.Errorf("the flag is %v, want %v", got, created)
	}
	me.call("POST", flagPath("new-checkout", "/enable"), nil).want(200)
	result := me.call("POST", flagPath("new-checkout", "/evaluate"), `{"targetingKey":"u1"}`).want(200).object()
	if result["value"] != true || result["enabled"] != true || result["reason"] != "FALLTHROUGH" {
		t.Errorf("evaluation gave %v", result)
	}
}
