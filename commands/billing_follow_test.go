package commands_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/billing"
	"flagledger/commands/payment/paymenttest"
	"flagledger/commands/writer"
	"flagledger/events"
)

// All subscriptions of a deleted tenant are cancelled.
func TestFollowingADeletedTenant(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	tenant := w.newTenant(t)
	customer := server.AddCustomer(map[string]string{"flagledger_tenant": tenant.TenantID})
	if _, _, err := writer.Do(
		t.Context(), w.writer, writer.By{}, commands.DeleteTenant{TenantRef: tenant},
	); err != nil {
		t.Fatal(err)
	}
	status := map[string]string{}
	for _, s := range []string{"active", "past_due", "unpaid", "paused", "incomplete", "trialing", "incomplete_expired"} {
		id := server.Subscribe(customer, "price_1")
		server.Change(id, func(sub *paymenttest.Subscription) { sub.Status = s })
		status[id] = s
	}
	if err := b.Follow(t.Context(), "", customer); err != nil {
		t.Fatal(err)
	}
	for id, before := range status {
		want := "canceled"
		if before == "incomplete_expired" {
			want = before
		}
		if got := server.Status(id); got != want {
			t.Errorf("a subscription that was %s is %s, want %s", before, got, want)
		}
	}
}

// A slow node that read the subscription long ago and writes it last leaves Stripe's newest state, even if other nodes
// had nothing to write meanwhile.
func TestFollowingWithOldNews(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	tenant, id := w.pay(t, b, server)
	follow := func(b *billing.Billing) {
		t.Helper()
		if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
			t.Error(err)
		}
	}
	follow(b)
	for _, last := range []string{"price_2", "price_1"} { // a different plan than before, and the same
		before := "price_2"
		server.Change(id, func(s *paymenttest.Subscription) { s.Price = before })
		late, once := *b, false
		late.Payments = till{b.Payments.(till).Payments, w.steps, func() {
			if once {
				return
			}
			once = true
			server.Change(id, func(s *paymenttest.Subscription) { s.Price, s.CancelAtEnd = last, true })
			follow(b)
		}}
		follow(&late)
		state, err := writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
		want := map[string]events.Plan{"price_1": events.StandardPlan, "price_2": events.EnhancedPlan}[last]
		if err != nil || state.Subscription.Plan != want || !state.Subscription.CancelAtPeriodEnd {
			t.Errorf("the tenant has %+v, want %s: %v", state.Subscription, want, err)
		}
		server.Change(id, func(s *paymenttest.Subscription) { s.Price, s.CancelAtEnd = "price_1", false })
		follow(b)
	}
}

// A deleted customer is removed, unless another has replaced them meanwhile.
func TestFollowingLateDeletionOfReplacedCustomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := paymenttest.New(t, paymenttest.Clock())
	b := w.billing(t, server)
	tenant := w.newTenant(t)
	add := func() (customer string) {
		return server.AddCustomer(map[string]string{"flagledger_tenant": tenant.TenantID})
	}
	note := func(customer, replaces string) {
		t.Helper()
		cmd := commands.NoteCustomer{TenantRef: tenant, CustomerID: customer, Replaces: replaces}
		if _, _, err := writer.Do(t.Context(), w.writer, writer.By{}, cmd); err != nil {
			t.Fatal(err)
		}
	}
	has := func(customer string) {
		t.Helper()
		state, err := writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
		if err != nil || state.Subscription.CustomerID != customer {
			t.Errorf("the tenant is the customer %q, want %q: %v", state.Subscription.CustomerID, customer, err)
		}
	}
	first, second, third := add(), add(), add()
	note(first, "")
	server.DeleteCustomer(first)
	if err := b.Follow(t.Context(), tenant.TenantID, first); err != nil {
		t.Error(err)
	}
	has("")
	note(second, "")
	if err := b.Follow(t.Context(), tenant.TenantID, first); err != nil {
		t.Error(err)
	}
	has(second)

	server.DeleteCustomer(second)
	late, once := *b, false
	late.Payments = till{b.Payments.(till).Payments, w.steps, func() {
		if !once {
			note(third, second)
		}
		once = true
	}}
	if err := late.Follow(t.Context(), tenant.TenantID, second); commands.KindOf(err) != commands.Conflict {
		t.Errorf("following a deletion while the customer is replaced ends with %v", err)
	}
	has(third)
}

// A subscription that Stripe does not know, or at an unknown price, ends nothing. The settings may name a different
// account.
func TestFollowingWhatStripeDoesNotKnow(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	tenant, id := w.pay(t, b, server)
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
		t.Fatal(err)
	}
	elsewhere := w.billing(t, paymenttest.New(t, paymenttest.Clock()))
	if err := elsewhere.Follow(t.Context(), tenant.TenantID, ""); commands.KindOf(err) != commands.NotFound {
		t.Errorf("got %v", err)
	}
	server.AddPrice("price_3", "month")
	server.Change(id, func(s *paymenttest.Subscription) { s.Price = "price_3" })
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err == nil {
		t.Error("a price that is not known is followed")
	}
	state, err := writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
	if err != nil || state.Subscription.Plan != events.StandardPlan || state.Subscription.Status != events.Active {
		t.Errorf("the tenant has %+v: %v", state.Subscription, err)
	}
}

// The recorded subscription counts while it can be managed. The end of an older one takes no plan away. A checkout
// changes the recorded one.
func TestFollowingSeveralSubscriptions(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	tenant := w.newTenant(t)
	customer := server.AddCustomer(map[string]string{"flagledger_tenant": tenant.TenantID})
	first := server.Subscribe(customer, "price_1")
	has := func(plan events.Plan, status events.SubscriptionStatus) {
		t.Helper()
		if err := b.Follow(t.Context(), "", customer); err != nil {
			t.Error(err)
		}
		state, err := writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
		if err != nil || state.Subscription.Plan != plan || state.Subscription.Status != status {
			t.Errorf("the tenant has %+v, want %s %s: %v", state.Subscription, plan, status, err)
		}
	}
	has(events.StandardPlan, events.Active)
	second := server.Subscribe(customer, "price_2")
	has(events.StandardPlan, events.Active)
	if _, kind, err := b.Checkout(t.Context(), writer.By{}, checkoutOf(tenant, events.EnhancedPlan)); err != nil ||
		kind != billing.PlanChangeCheckout {
		t.Errorf("a checkout is a %s, %v", kind, err)
	}
	for _, call := range server.Calls("POST", "/v1/billing_portal/sessions") {
		if changed := call.Form.Get("flow_data[subscription_update_confirm][subscription]"); changed != first {
			t.Errorf("a checkout changes %s, want %s, which counts", changed, first)
		}
	}
	server.End(first)
	has(events.EnhancedPlan, events.Active)
	server.FailPayment(second)
	has(events.EnhancedPlan, events.PastDue)
	server.End(second)
	has(events.EnhancedPlan, events.Canceled)
}

// Other products that the operator sells to the same customer are ignored: they cause no error, a checkout does not
// change them, and they survive the tenant's deletion.
func TestWhatIsSoldBesidePlans(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	server.AddPrice("price_support", "month")
	tenant := w.newTenant(t)
	customer := server.AddCustomer(map[string]string{"flagledger_tenant": tenant.TenantID})
	support := server.Subscribe(customer, "price_support")
	if err := b.Follow(t.Context(), "", customer); err != nil {
		t.Error(err)
	}
	checkout := checkoutOf(tenant, events.StandardPlan)
	checkout.CustomerID = customer
	url, kind, err := b.Checkout(t.Context(), writer.By{}, checkout)
	if err != nil || kind != billing.SubscriptionCheckout {
		t.Fatalf("a checkout is a %s: %v", kind, err)
	}
	plan := server.Pay(url)
	server.Subscribe(customer, "price_support") // which is newer
	if err := b.Follow(t.Context(), "", customer); err != nil {
		t.Error(err)
	}
	state, err := writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
	if err != nil || state.Subscription.ID != plan || state.Subscription.Plan != events.StandardPlan {
		t.Errorf("the tenant has %+v: %v", state.Subscription, err)
	}
	if _, _, err := writer.Do(
		t.Context(), w.writer, writer.By{}, commands.DeleteTenant{TenantRef: tenant},
	); err != nil {
		t.Fatal(err)
	}
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
		t.Error(err)
	}
	if server.Status(plan) != "canceled" || server.Status(support) != "active" {
		t.Errorf("the plan is %s, the support %s", server.Status(plan), server.Status(support))
	}
}

// A sandbox that pays an unknown price is not deleted: the operator is told, and it gets its plan once the price is
// known.
func TestASandboxThatPaysAnUnknownPriceIsKept(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	tenant, end := commands.TenantRef{TenantID: uuid.NewString()}, time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	create := commands.CreateTenant{ID: tenant.TenantID, Name: "sandbox", Creator: "owner", SandboxEndsAt: end}
	if _, _, err := writer.Do(t.Context(), w.writer, writer.By{}, create); err != nil {
		t.Fatal(err)
	}
	url, _, err := b.Checkout(t.Context(), writer.By{}, checkoutOf(tenant, events.StandardPlan))
	if err != nil {
		t.Fatal(err)
	}
	prices := b.Prices
	if b.Prices, err = billing.ParsePlanPrices("enhanced=price_2"); err != nil {
		t.Fatal(err)
	}
	server.Pay(url)
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err == nil {
		t.Error("a price that is not known is no error")
	}
	remove := commands.DeleteEndedSandbox{TenantRef: tenant, EndsAt: end, Now: end.Add(2 * commands.SandboxKeptAfterEnd)}
	state, _, err := writer.Do(t.Context(), w.writer, writer.ByService(), remove)
	if err != nil || !state.Exists || state.Subscription.PlanAt(time.Now(), true) != events.SandboxPlan {
		t.Errorf("the sandbox has %+v, and is there: %v; %v", state.Subscription, state.Exists, err)
	}
	b.Prices = prices
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
		t.Error(err)
	}
	state, err = writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
	if err != nil || state.Subscription.PlanAt(time.Now(), true) != events.StandardPlan {
		t.Errorf("once the price is known the sandbox has %+v: %v", state.Subscription, err)
	}
}
