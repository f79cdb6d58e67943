package events

import "time"

// SubscriptionStatus is the state of a subscription, as Stripe names it, or NoSubscription.
type SubscriptionStatus string

// The states of a subscription.
const (
	NoSubscription    SubscriptionStatus = "none"
	Incomplete        SubscriptionStatus = "incomplete"
	IncompleteExpired SubscriptionStatus = "incomplete_expired"
	Trialing          SubscriptionStatus = "trialing"
	Active            SubscriptionStatus = "active"
	PastDue           SubscriptionStatus = "past_due"
	Unpaid            SubscriptionStatus = "unpaid"
	Canceled          SubscriptionStatus = "canceled"
	Paused            SubscriptionStatus = "paused"
)

// Known reports whether there is such a state.
func (s SubscriptionStatus) Known() bool {
	switch s {
	case NoSubscription, Incomplete, IncompleteExpired, Trialing, Active, PastDue, Unpaid, Canceled, Paused:
		return true
	}
	return false
}

// Manageable reports whether a subscription can be changed and cancelled.
func (s SubscriptionStatus) Manageable() bool { return s == Trialing || s == Active || s == PastDue }

// BillingCycle is how often a subscription is paid; empty if neither applies.
type BillingCycle string

// The billing cycles.
const (
	Monthly BillingCycle = "monthly"
	Yearly  BillingCycle = "yearly"
)

// Subscription holds a tenant's plan and what pays for it. With NoSubscription the plan is free and does not end.
type Subscription struct {
	ID                string             `json:"id,omitempty"`         // at the payment provider
	CustomerID        string             `json:"customerId,omitempty"` // at the payment provider
	Plan              Plan               `json:"plan"`
	Status            SubscriptionStatus `json:"status"`
	BillingCycle      BillingCycle       `json:"billingCycle,omitempty"`
	PeriodStart       time.Time          `json:"periodStart,omitzero"` // of the period that is paid or billed
	PeriodEnd         time.Time          `json:"periodEnd,omitzero"`
	CancelAtPeriodEnd bool               `json:"cancelAtPeriodEnd,omitempty"`
	PastDueSince      time.Time          `json:"pastDueSince,omitzero"` // set while it is past due
}

// SubscriptionChanged changes the plan of a tenant, or what pays for it.
type SubscriptionChanged struct {
	From Subscription `json:"from"`
	To   Subscription `json:"to"`
}

// StoredName implements Fact.
func (SubscriptionChanged) StoredName() string { return "tenant.subscription_changed" }

func (SubscriptionChanged) tenantFact() {}

// FirstSubscription returns the subscription of a new tenant: none.
func (t TenantCreated) FirstSubscription() Subscription {
	return Subscription{Plan: t.Plan, Status: NoSubscription}
}

// PastDueGrace is how long a subscription retains its plan without a payment.
const PastDueGrace = 7 * 24 * time.Hour

// PlanAt returns the plan in force at a time. A plan ends with its paid period; afterwards a tenant has the free plan,
// and a sandbox the sandbox plan.
func (s Subscription) PlanAt(now time.Time, sandbox bool) Plan {
	switch {
	case s.inForce(now):
		return s.Plan
	case sandbox:
		return SandboxPlan
	default:
		return FreePlan
	}
}

func (s Subscription) inForce(now time.Time) bool {
	over := !s.PeriodEnd.IsZero() && !now.Before(s.PeriodEnd)
	switch s.Status {
	case NoSubscription:
		return true
	case Trialing, Active:
		// A renewing subscription counts as past due until the renewal is reported.
		return !over || !s.CancelAtPeriodEnd && now.Before(s.PeriodEnd.Add(PastDueGrace))
	case PastDue:
		return now.Before(s.PastDueSince.Add(PastDueGrace)) && (!over || !s.CancelAtPeriodEnd)
	case Incomplete, IncompleteExpired, Unpaid, Canceled, Paused:
	}
	return false
}
