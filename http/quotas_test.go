package http

import (
	"testing"

	"flagledger/commands"
	"flagledger/events"
)

func TestWhoseQuotaOfRequestsIsUsed(t *testing.T) {
	a := newAPI(anonymous(1))
	a.Live = testLive{}
	if id, _, plan := a.requestQuota(&credential{claims: commands.Claims{UserID: "me"}}, "deleted"); id != "me" || plan != events.FreePlan {
		t.Errorf("a person whose tenants were deleted is counted as %s with %q", id, plan)
	}
	if id, _, plan := a.requestQuota(&credential{machine: &machine{clientID: "c", tenantID: "deleted"}}, "other"); id != "deleted" || plan != events.FreePlan {
		t.Errorf("a machine whose tenant was deleted is counted as %s with %q", id, plan)
	}
}
