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

func (c SetSubscription) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	from, to := t.Subscription, c.Subscription
	wrong := FieldErrors{}
	checkPlan(wrong, to.Plan)
	wrong.Check(to.Status.Known(), "status", "is not a subscription status")
	wrong.Check(to.BillingCycle == "" || to.BillingCycle == events.Monthly || to.BillingCycle == events.Yearly,
		"billingCycle", "must be monthly or yearly")
	if err := wrong.Err(); err != nil {
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

func (c SetPlan) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	checkPlan(wrong, c.Plan)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	from := t.Subscription
	if from.Status.Manageable() {
		return nil, Refuse(Conflict,
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

func checkPlan(wrong FieldErrors, plan events.Plan) {
	wrong.Check(plan.Known(), "plan", "%q is not a plan; plans are %s", plan,
		strings.Join(events.PlanNames(events.AnyPlan), ", "))
}

// NoteCustomer records a tenant's customer at the payment provider.
type NoteCustomer struct {
	TenantRef
	CustomerID string // empty if it was deleted there
	Replaces   string // the recorded one; empty for none
}

func (c NoteCustomer) Decide(t state.Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	if t.Subscription.CustomerID != c.CustomerID && t.Subscription.CustomerID != c.Replaces {
		return nil, Refuse(Conflict, "the tenant has become another customer meanwhile")
	}
	to := t.Subscription
	to.CustomerID = c.CustomerID
	return changeSubscription(t.Subscription, to), nil
}
