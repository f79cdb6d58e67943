package commands

import (
	"strings"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// The subscription of a tenant is part of the tenant's stream.

// SetSubscription records the payment provider's state of a tenant's subscription. It is idempotent.
//
// An unused subscription changes nothing unless it is the tenant's current one: an incomplete checkout or the end of
// an earlier subscription does not affect the plan.
type SetSubscription struct {
	TenantRef
	Subscription events.Subscription // without PastDueSince
	Now          time.Time
}

func (c SetSubscription) decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	from, to := t.Subscription, c.Subscription
	wrong := fields{}
	checkPlan(wrong, to.Plan)
	wrong.check(to.Status.Known(), "status", "is not a subscription status")
	wrong.check(to.BillingCycle == "" || to.BillingCycle == events.Monthly || to.BillingCycle == events.Yearly,
		"billingCycle", "must be monthly or yearly")
	if err := wrong.err(); err != nil {
		return nil, err
	}
	if to.ID != from.ID && !to.Status.Manageable() {
		return nil, nil
	}
	to.PeriodStart, to.PeriodEnd = to.PeriodStart.UTC().Round(0), to.PeriodEnd.UTC().Round(0)
	switch {
	case to.Status != events.PastDue:
		to.PastDueSince = time.Time{}
	case to.ID == from.ID && from.Status == events.PastDue:
		to.PastDueSince = from.PastDueSince
	default:
		to.PastDueSince = c.Now.UTC().Truncate(time.Second)
	}
	return changeSubscription(from, to), nil
}

// SetPlan gives a tenant a plan without payment. It does not end by itself.
type SetPlan struct {
	TenantRef
	Plan events.Plan
}

func (c SetPlan) decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := fields{}
	checkPlan(wrong, c.Plan)
	if err := wrong.err(); err != nil {
		return nil, err
	}
	from := t.Subscription
	if from.Status.Manageable() {
		return nil, refuse(Conflict,
			"the tenant has the subscription %s, which its plan follows: change or cancel it at the payment provider", from.ID)
	}
	return changeSubscription(from,
		events.Subscription{CustomerID: from.CustomerID, Plan: c.Plan, Status: events.NoSubscription}), nil
}

func changeSubscription(from, to events.Subscription) []events.Fact {
	if events.StoredEqual(from, to) {
		return nil
	}
	return []events.Fact{events.SubscriptionChanged{From: from, To: to}}
}

func checkPlan(wrong fields, plan events.Plan) {
	wrong.check(plan.Known(), "plan", "%q is not a plan; plans are %s", plan,
		strings.Join(events.PlanNames(events.AnyPlan), ", "))
}
