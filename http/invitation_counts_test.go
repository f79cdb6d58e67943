package http_test

import (
	"fmt"
	"strings"
	"testing"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
)

// A tenant adds as many members a day as its plan lets it, a person no more in all of theirs, whichever nodes they call.
func TestInvitationsOfADay(t *testing.T) {
	t.Parallel()
	nodetest.RunOnce(t)
	c := &clock{}
	s := nodetest.Start(t, nodetest.Database(t), node.Config{Environment: "development", Limits: nodetest.Generous, Now: c.now}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	there := *me
	there.Service = s.SecondNode()
	add := func(who *nodetest.Client, i int) *nodetest.Answer {
		return who.Call("POST", "/api/v1/tenants/"+who.Tenant+"/users", map[string]string{"email": fmt.Sprintf("person%d@example.com", i), "role": "viewer"})
	}
	for i := range 25 {
		add(me, i).Want(201)
		if i%10 == 0 {
			add(me, i).Refused(409) // which does not count
		}
	}
	refused := func(who *nodetest.Client) {
		t.Helper()
		a := add(who, 99).Refused(429)
		if wait := a.Header.Get("Retry-After"); wait == "" || wait != a.Header.Get("RateLimit-Reset") || a.Header.Get("RateLimit-Limit") != "25" || !strings.Contains(fmt.Sprint(a.Object()["detail"]), "25 invitations") {
			t.Errorf("refused with %v: %s", a.Header, a.Body)
		}
	}
	refused(me)
	refused(&there)
	refused(me.NewTenant("another"))
	if members := me.Call("GET", "/api/v1/tenants/"+me.Tenant+"/users", nil).Want(200).List(); len(members) != 26 {
		t.Errorf("the tenant has %d members, want 26", len(members))
	}
	add(s.SignUp("you@example.com"), 1).Want(201)
}
