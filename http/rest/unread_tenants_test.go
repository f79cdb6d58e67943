package rest_test

import (
	"testing"

	"flagledger/cmd/flagledger/nodetest"
)

// A person with many free tenants has one quota of unread responses, for the tenants' machines and for themselves.
func TestUnpaidTenantsShareOneQuotaOfUnreadAnswers(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	second := me.NewTenant("second")
	for _, tenantID := range []string{me.Tenant, second.Tenant} {
		nodetest.Same(t, "whose quota is used", me.Service.Node.API.MachineAnswerQuota(tenantID), me.UserID)
	}
}
