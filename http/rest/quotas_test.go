package rest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"flagledger/commands/people"
	"flagledger/events"
	"flagledger/http/quota"
)

func TestWhoseQuotaOfRequestsIsUsed(t *testing.T) {
	a := newCore(anonymous(1))
	a.Live = testLive{}
	if id, _, plan := a.requestQuota(&Credential{Claims: people.Claims{UserID: "me"}}, "deleted"); id != "me" ||
		plan != events.FreePlan {
		t.Errorf("a person whose tenants were deleted is counted as %s with %q", id, plan)
	}
	if id, _, plan := a.requestQuota(
		&Credential{Machine: &Machine{ClientID: "c", TenantID: "deleted"}}, "other",
	); id != "deleted" ||
		plan != events.FreePlan {
		t.Errorf("a machine whose tenant was deleted is counted as %s with %q", id, plan)
	}
}

// A person with many accounts has no more calls than one address until an address is verified.
func TestCallsOfUnverifiedAccountsCountForTheirAddress(t *testing.T) {
	a := newCore(quota.Limits{Plans: map[events.Plan]int{events.FreePlan: 20}, Anonymous: 30, Auth: 1})
	passed := func(address string, verified bool, accounts int) (n int) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = address
		for i := range 100 {
			if !a.count(
				r,
				&request{
					credential: &Credential{Claims: people.Claims{UserID: fmt.Sprint(address, i%accounts), EmailVerified: verified}},
				},
			).Exceeded {
				n++
			}
		}
		return n
	}
	a.Environment = "production"
	if n := passed("192.0.2.1:1", false, 5); n != 30 {
		t.Errorf("%d calls of five accounts pass", n)
	}
	if n := passed("192.0.2.2:1", false, 1); n != 20 {
		t.Errorf("%d calls of one account pass", n)
	}
	if n := passed("192.0.2.3:1", true, 5); n != 100 {
		t.Errorf("%d calls of verified accounts pass", n)
	}
}
