package http_test

import (
	"fmt"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events"
	"flagledger/http"
	"flagledger/http/quota"
)

const billingPath = "/api/v1/billing"

func TestSubscription(t *testing.T) {
	nodetest.Cases{
		"a tenant without one": func(t *testing.T, me *nodetest.Client) {
			none := map[string]any{
				"id":                 nil,
				"plan":               "free",
				"status":             "none",
				"currentPeriodStart": nil,
				"currentPeriodEnd":   nil,
				"cancelAtPeriodEnd":  false,
				"payments":           false,
			}
			nodetest.Same(t, "the subscription", me.Call("GET", billingPath+"/subscription", nil).Want(200).Object(), none)
			legacy := me.Call("GET", "/api/billing/subscription", nil).Want(200)
			nodetest.Same(t, "the subscription under its old path", legacy.Object(), none)
			if legacy.Header.Get("Deprecation") == "" {
				t.Error("the old path is not said to be deprecated")
			}
			sandbox := *me
			sandbox.Tenant = me.Call("POST", "/api/v1/tenants", `{"name":"sandbox","isSandbox":true}`).Want(201).Object()["id"].(string)
			none["plan"] = "sandbox"
			nodetest.Same(t, "the subscription of a sandbox",
				sandbox.Call("GET", billingPath+"/subscription", nil).Want(200).Object(), none)
		},
		"who may read it": func(_ *testing.T, me *nodetest.Client) {
			for _, tail := range []string{"/subscription", "/features/analytics", "/features/experiments/check", "/features/multivariate/check"} {
				me.Join("viewer").Call("GET", billingPath+tail, nil).Want(200)
				me.Machine("flags:read").Call("GET", billingPath+tail, nil).Refused(403)
				me.Service.SignUp(nodetest.Address()).Call("GET", billingPath+tail, nil, "X-Tenant-ID", me.Tenant).Refused(403)
			}
		},
		"features are those of the plan and the lower ones": func(t *testing.T, me *nodetest.Client) {
			for plan, want := range map[events.Plan][3]bool{
				events.FreePlan: {}, events.SandboxPlan: {}, events.StandardPlan: {true}, events.PremiumPlan: {true}, events.EnhancedPlan: {true, true, true}, events.EnterprisePlan: {true, true, true},
			} {
				me.Subscribe(events.Subscription{ID: "sub_" + me.Tenant, Plan: plan, Status: events.Active})
				for i, tail := range []string{"analytics", "experiments/check", "multivariate/check"} {
					required := []string{"standard", "enhanced", "enhanced"}[i]
					nodetest.Same(t, fmt.Sprintf("%s with %s", tail, plan),
						me.Call("GET", billingPath+"/features/"+tail, nil).Want(200).Object(),
						map[string]any{"hasAccess": want[i], "plan": plan, "requiredPlan": required})
				}
			}
		},
	}.Run(t)
}

// Every node and every response shows the plan in force from the time it is known until it ends, even if no event marks
// its end.
func TestThePlanInForceOnEveryNode(t *testing.T) {
	nodetest.BothEngines(t, testThePlanInForceOnEveryNode)
}

func testThePlanInForceOnEveryNode(t *testing.T) {
	t.Parallel()
	c := &clock{}
	s := nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		SuperUsers:  []string{"root@example.com"},
		Now:         c.now,
		Limits: quota.Limits{
			Plans:     map[events.Plan]int{events.FreePlan: 1_000_000, events.StandardPlan: 2_000_000},
			Anonymous: 1_000_000,
			Auth:      1_000_000,
		},
		Features: http.Features{
			events.Analytics:    events.FreePlan,
			events.Experiments:  events.StandardPlan,
			events.Multivariate: events.EnterprisePlan,
		},
	}, nodetest.Log(t))
	me, root := s.SignUp("me@example.com"), s.SignUp("root@example.com")
	there := *me
	there.Service = s.SecondNode()
	end := c.now().Add(10 * time.Minute).Truncate(time.Second)
	me.Subscribe(events.Subscription{
		ID: "sub_1", CustomerID: "cus_1", Plan: events.StandardPlan, Status: events.Active, BillingCycle: events.Yearly,
		PeriodStart: end.AddDate(-1, 0, 0), PeriodEnd: end, CancelAtPeriodEnd: true,
	})
	shows := func(who *nodetest.Client, plan string, limit int, experiments bool) {
		t.Helper()
		a := who.Call("GET", billingPath+"/subscription", nil).Want(200)
		const format = "2006-01-02T15:04:05.000Z"
		nodetest.Same(t, "the subscription", a.Object(), map[string]any{
			"id": "sub_1", "plan": plan, "status": "active", "cancelAtPeriodEnd": true, "payments": false,
			"currentPeriodStart": end.AddDate(-1, 0, 0).UTC().Format(format), "currentPeriodEnd": end.UTC().Format(format),
		})
		if got, _, _ := budget(a); got != limit {
			t.Errorf("the limit is %d, want %d", got, limit)
		}
		summary := map[string]any{"plan": plan, "status": "active"}
		nodetest.Same(t, "in the list of tenants",
			entry(who.Call("GET", "/api/v1/tenants", nil).Want(200).List(), "id", me.Tenant)["subscription"], summary)
		nodetest.Same(t, "the tenant", who.Call("GET", "/api/v1/tenants/"+me.Tenant, nil).Want(200).Object()["subscription"],
			summary)
		nodetest.Same(t, "after a change",
			who.Call("PATCH", "/api/v1/tenants/"+me.Tenant, `{"contactName":"Ada"}`).Want(200).Object()["subscription"], summary)
		nodetest.Same(t, "in the list of all tenants",
			entry(root.Call("GET", "/api/v1/admin/tenants", nil).Want(200).List(), "id", me.Tenant)["subscription"], summary)
		nodetest.Same(t, "to who signs in",
			who.Call("POST", "/api/v1/auth/login", map[string]string{"idToken": who.Token}).Want(200).Object()["data"].(map[string]any)["subscription"],
			map[string]any{"plan": plan, "status": "active", "billingCycle": "yearly"})
		for feature, want := range map[string]bool{"analytics": true, "experiments/check": experiments, "multivariate/check": false} {
			nodetest.Same(t, feature, who.Call("GET", billingPath+"/features/"+feature, nil).Want(200).Object()["hasAccess"],
				want)
		}
	}
	shows(me, "standard", 2_000_000, true)
	s.Eventually("the other node knows of it", func() bool {
		return there.Call("GET", billingPath+"/subscription", nil).Want(200).Object()["id"] != nil
	})
	shows(&there, "standard", 2_000_000, true)
	c.add(end.Sub(c.now()))
	shows(me, "free", 1_000_000, false)
	shows(&there, "free", 1_000_000, false)
}
