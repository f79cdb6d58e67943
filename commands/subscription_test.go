package commands

import (
	"testing"
	"time"

	"flagledger/events"
)

var (
	billedAt = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	free     = events.Subscription{Plan: events.FreePlan, Status: events.NoSubscription}
)

// paid is a subscription at the payment provider.
func paid(id string, status events.SubscriptionStatus, change ...func(*events.Subscription)) events.Subscription {
	s := events.Subscription{
		ID: id, CustomerID: "cus_1", Plan: events.StandardPlan, Status: status, BillingCycle: events.Monthly,
		PeriodStart: billedAt, PeriodEnd: billedAt.AddDate(0, 1, 0),
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

// pastDueSince is when a payment was first missing.
func pastDueSince(at time.Time) func(*events.Subscription) {
	return func(s *events.Subscription) { s.PastDueSince = at }
}

// subscribed returns the facts of a tenant with these subscriptions, one after another.
func subscribed(list ...events.Subscription) []events.Fact {
	facts := []events.Fact{events.TenantCreated{ID: "t", Name: "Acme", Plan: events.FreePlan}}
	from := free
	for _, to := range list {
		facts = append(facts, events.SubscriptionChanged{From: from, To: to})
		from = to
	}
	return facts
}

func TestSetSubscription(t *testing.T) {
	set := func(s events.Subscription) SetSubscription {
		return SetSubscription{TenantRef: TenantRef{"t"}, Subscription: s, Now: billedAt.Add(time.Hour + time.Millisecond)}
	}
	active, missed := paid("sub_1", events.Active), pastDueSince(billedAt.Add(time.Hour))
	when(t, subscribed(), set(active)).then(events.SubscriptionChanged{From: free, To: active})
	t.Run("what is known already appends nothing", func(t *testing.T) {
		when(t, subscribed(active), set(active)).then()
		elsewhere := paid("sub_1", events.Active, func(s *events.Subscription) {
			s.PeriodStart, s.PeriodEnd = s.PeriodStart.In(time.FixedZone("", 3600)), s.PeriodEnd.In(time.FixedZone("", 3600))
		})
		when(t, subscribed(active), set(elsewhere)).then()
		when(t, subscribed(), set(free)).then()
	})
	t.Run("a payment is missing since it was first heard of", func(t *testing.T) {
		due := paid("sub_1", events.PastDue, missed)
		when(t, subscribed(active), set(paid("sub_1", events.PastDue))).then(events.SubscriptionChanged{From: active, To: due})
		earlier := paid("sub_1", events.PastDue, pastDueSince(billedAt))
		when(t, subscribed(earlier), set(paid("sub_1", events.PastDue))).then()
		when(
			t,
			subscribed(earlier),
			set(paid("sub_2", events.PastDue)),
		).then(events.SubscriptionChanged{From: earlier, To: paid("sub_2", events.PastDue, missed)})
		when(t, subscribed(due), set(active)).then(events.SubscriptionChanged{From: due, To: active})
	})
	t.Run("a subscription that is not in use takes nothing away", func(t *testing.T) {
		given := events.Subscription{CustomerID: "cus_1", Plan: events.EnterprisePlan, Status: events.NoSubscription}
		for _, status := range []events.SubscriptionStatus{
			events.Incomplete, events.IncompleteExpired, events.Unpaid, events.Canceled, events.Paused,
		} {
			when(t, subscribed(given), set(paid("sub_1", status))).then()
			when(t, subscribed(active), set(paid("sub_2", status))).then()
			when(
				t,
				subscribed(active),
				set(paid("sub_1", status)),
			).then(events.SubscriptionChanged{From: active, To: paid("sub_1", status)})
		}
		when(t, subscribed(given), set(active)).then(events.SubscriptionChanged{From: given, To: active})
	})
	when(t, nil, set(active)).refused(NotFound)
	when(t, append(subscribed(), events.TenantDeleted{}), set(active)).refused(NotFound)
	when(
		t,
		subscribed(),
		set(events.Subscription{ID: "sub_1", BillingCycle: "weekly"}),
	).refused(Invalid, "plan", "status", "billingCycle")
}

func TestSetPlan(t *testing.T) {
	set := func(plan events.Plan) SetPlan { return SetPlan{TenantRef: TenantRef{"t"}, Plan: plan} }
	given := events.Subscription{Plan: events.EnterprisePlan, Status: events.NoSubscription}
	when(t, subscribed(), set(events.EnterprisePlan)).then(events.SubscriptionChanged{From: free, To: given})
	when(t, subscribed(given), set(events.EnterprisePlan)).then()
	when(t, subscribed(given), set(events.FreePlan)).then(events.SubscriptionChanged{From: given, To: free})
	over := paid("sub_1", events.Canceled)
	given.CustomerID = "cus_1"
	when(t, subscribed(over), set(events.EnterprisePlan)).then(events.SubscriptionChanged{From: over, To: given})
	for _, status := range []events.SubscriptionStatus{events.Trialing, events.Active, events.PastDue} {
		when(t, subscribed(paid("sub_1", status)), set(events.EnterprisePlan)).refused(Conflict)
	}
	when(t, subscribed(), set("gold")).refused(Invalid, "plan")
	when(t, nil, set(events.FreePlan)).refused(NotFound)
}
