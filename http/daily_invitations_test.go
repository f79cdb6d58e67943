package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
)

// A tenant adds as many members a day as its plan allows, and a person no more in all their tenants, whichever nodes
// they call.
func TestInvitationsOfADay(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(t, nodetest.Database(t),
		settings.Config{Environment: "development", Limits: nodetest.Generous, Now: withinADay().now}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	there := *me
	there.Service = s.SecondNode()
	add := func(who *nodetest.Client, i int, headers ...string) *nodetest.Answer {
		return who.Call(
			"POST",
			"/api/v1/tenants/"+who.Tenant+"/users",
			map[string]string{"email": fmt.Sprintf("person%d@example.com", i), "role": "viewer"},
			headers...)
	}
	for i := range 24 {
		add(me, i).Want(201)
		if i%10 == 0 {
			add(me, i).Refused(409) // does not count
		}
	}
	add(me, 24, "Idempotency-Key", "last").Want(201)
	refused := func(who *nodetest.Client) {
		t.Helper()
		a := add(who, 99).Refused(429)
		if wait := a.Header.Get(
			"Retry-After",
		); wait == "" || wait != a.Header.Get("RateLimit-Reset") || a.Header.Get("RateLimit-Limit") != "25" ||
			!strings.Contains(fmt.Sprint(a.Object()["detail"]), "25 invitations") {
			t.Errorf("refused with %v: %s", a.Header, a.Body)
		}
	}
	refused(me)
	refused(&there)
	refused(me.NewTenant("another"))
	for range 2 { // the key does not store the refusal: a retry on another day may succeed
		notReplayed(add(me, 25, "Idempotency-Key", "refused").Refused(429))
	}
	forgetAnswers(s)
	notReplayed(add(me, 24, "Idempotency-Key", "last").Want(201)) // it was made before, so that it does not count
	if members := me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/users", nil).Want(200).List(); len(members) != 26 {
		t.Errorf("the tenant has %d members, want 26", len(members))
	}
	add(s.SignUp("you@example.com"), 1).Want(201)
}

func TestInvitationsToThePlatformCountByThemselves(t *testing.T) {
	t.Parallel()
	s := nodetest.Start(
		t,
		nodetest.Database(t),
		settings.Config{
			Environment:       "development",
			SuperUsers:        []string{"root@example.com"},
			InvitationsPerDay: 1,
			Now:               withinADay().now,
		},
		nodetest.Log(t),
	)
	root := s.SignUp("root@example.com")
	for _, email := range []string{"a@example.com", "b@example.com"} {
		root.Call("POST", invitationsPath, map[string]string{"email": email, "role": "viewer"}).Want(201)
	}
	add := func(email string) *nodetest.Answer {
		return root.Call("POST", "/api/v1/tenants/"+root.Tenant+"/users", map[string]string{"email": email, "role": "viewer"})
	}
	add("a@example.com").Want(201)
	add("b@example.com").Refused(429)
}
