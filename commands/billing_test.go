package commands_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/payment"
	"flagledger/commands/payment/paymenttest"
	"flagledger/events"
)

// till is Stripe whose pages are steps, and whose answers of subscriptions may be held back.
type till struct {
	commands.Payments
	*steps
	read func() // is called once the subscriptions have been read
}

func (p till) NewCustomer(ctx context.Context, tenantID string) (string, error) {
	if err := p.take("customer"); err != nil {
		return "", err
	}
	return p.Payments.NewCustomer(ctx, tenantID)
}

func (p till) Checkout(ctx context.Context, key string, c commands.CheckoutPage) (string, error) {
	if err := p.take("page"); err != nil {
		return "", err
	}
	return p.Payments.Checkout(ctx, key, c)
}

func (p till) Subscriptions(ctx context.Context, customerID string) ([]commands.PaymentSubscription, error) {
	list, err := p.Payments.Subscriptions(ctx, customerID)
	if p.read != nil {
		p.read()
	}
	return list, err
}

// billing sells standard and enhanced at a Stripe of the test's own.
func (w *world) billing(t *testing.T, server *paymenttest.Server) *commands.Billing {
	t.Helper()
	server.AddPrice("price_1", "month")
	server.AddPrice("price_2", "month")
	stripe := payment.Open(payment.Settings{SecretKey: paymenttest.SecretKey, WebhookSecret: paymenttest.WebhookSecret, Base: server.URL(), Currency: "eur"})
	b := &commands.Billing{Writer: w.writer, Payments: till{stripe, w.steps, nil}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	queue, err := jobs.Open(w.pool)
	if err != nil {
		t.Fatal(err)
	}
	b.Events = jobs.NewPayments(queue, time.Now)
	if b.Prices, err = commands.ParsePlanPrices("standard=price_1,enhanced=price_2"); err != nil {
		t.Fatal(err)
	}
	if b.ReturnURLs, err = commands.NewReturnURLs([]string{"https://app.example.com"}, false); err != nil {
		t.Fatal(err)
	}
	return b
}

func checkoutOf(tenant commands.TenantRef, plan events.Plan) commands.Checkout {
	return commands.Checkout{TenantID: tenant.TenantID, Type: commands.SubscriptionCheckout, Plan: plan, SuccessURL: "https://app.example.com", CancelURL: "https://app.example.com", Key: tenant.TenantID}
}

// Whichever step of a first checkout fails, nothing is sold, and the checkout made again has one customer.
func TestACheckoutThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := paymenttest.New(t, time.Now)
	b := w.billing(t, server)
	all := []string{"customer", "append tenant.subscription_changed", "page"}
	for failing := range len(all) + 1 {
		tenant := w.newTenant(t)
		*w.steps = steps{failing: failing}
		_, _, err := b.Checkout(t.Context(), commands.By{}, checkoutOf(tenant, events.StandardPlan))
		if errors.Is(err, errStep) != (failing > 0) {
			t.Errorf("step %d: %v", failing, err)
		}
		if failing > 0 {
			*w.steps = steps{}
			if _, _, err := b.Checkout(t.Context(), commands.By{}, checkoutOf(tenant, events.StandardPlan)); err != nil {
				t.Error(err)
			}
		}
		want := all
		if failing == len(all) { // the customer is known by then
			want = all[2:]
		}
		if diff := cmp.Diff(want, w.taken); diff != "" {
			t.Errorf("step %d: the steps (-want +got):\n%s", failing, diff)
		}
		state, err := commands.ReadTenant(t.Context(), w.writer, tenant.TenantID)
		if err != nil || state.Subscription.CustomerID == "" || state.Subscription.Plan != events.FreePlan || state.Subscription.Status != events.NoSubscription {
			t.Errorf("step %d: the tenant has %+v, %v", failing, state.Subscription, err)
		}
		customers := map[string]bool{}
		for _, call := range server.Calls("POST", "/v1/checkout/sessions") {
			if call.Form.Get("metadata[flagledger_tenant]") == tenant.TenantID {
				customers[call.Form.Get("customer")] = true
			}
		}
		if len(customers) != 1 || !customers[state.Subscription.CustomerID] {
			t.Errorf("step %d: pages were made for %v, the tenant is %s", failing, customers, state.Subscription.CustomerID)
		}
	}
}

// A tenant that takes no changes, as a sandbox that has ended, can check out for the first time and have its plan.
func TestPayingForASandboxThatEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := paymenttest.New(t, time.Now)
	b := w.billing(t, server)
	tenant := w.newTenant(t)
	w.writer.Guard = commands.SandboxGuard(ended{}, time.Now)
	_, _, err := commands.Do(t.Context(), w.writer, commands.By{}, commands.UpdateTenant{TenantRef: tenant})
	if commands.KindOf(err) != commands.Forbidden {
		t.Fatalf("a change: %v", err)
	}
	url, _, err := b.Checkout(t.Context(), commands.By{}, checkoutOf(tenant, events.StandardPlan))
	if err != nil {
		t.Fatal(err)
	}
	server.Pay(url)
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
		t.Fatal(err)
	}
	state, err := commands.ReadTenant(t.Context(), w.writer, tenant.TenantID)
	if err != nil || state.Subscription.Plan != events.StandardPlan || state.Subscription.Status != events.Active {
		t.Errorf("the tenant has %+v: %v", state.Subscription, err)
	}
}

// ended has every tenant end at once.
type ended struct{}

func (ended) SandboxEnd(_ string, now time.Time) time.Time { return now }

// Whatever could still be billed is cancelled for a tenant that was deleted.
func TestFollowingADeletedTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := paymenttest.New(t, time.Now)
	b := w.billing(t, server)
	tenant := w.newTenant(t)
	customer := server.AddCustomer(map[string]string{"flagledger_tenant": tenant.TenantID})
	if _, _, err := commands.Do(t.Context(), w.writer, commands.By{}, commands.DeleteTenant{TenantRef: tenant}); err != nil {
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

// Somebody who has read the subscription long ago and writes it last leaves what Stripe has, also where others had nothing to write meanwhile.
func TestFollowingWithOldNews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := paymenttest.New(t, time.Now)
	b := w.billing(t, server)
	tenant := w.newTenant(t)
	url, _, err := b.Checkout(t.Context(), commands.By{}, checkoutOf(tenant, events.StandardPlan))
	if err != nil {
		t.Fatal(err)
	}
	id := server.Pay(url)
	follow := func(b *commands.Billing) {
		t.Helper()
		if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
			t.Error(err)
		}
	}
	follow(b)
	for _, last := range []string{"price_2", "price_1"} { // another plan than before, and the same
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
		state, err := commands.ReadTenant(t.Context(), w.writer, tenant.TenantID)
		want := map[string]events.Plan{"price_1": events.StandardPlan, "price_2": events.EnhancedPlan}[last]
		if err != nil || state.Subscription.Plan != want || !state.Subscription.CancelAtPeriodEnd {
			t.Errorf("the tenant has %+v, want %s: %v", state.Subscription, want, err)
		}
		server.Change(id, func(s *paymenttest.Subscription) { s.Price, s.CancelAtEnd = "price_1", false })
		follow(b)
	}
}

// A subscription that Stripe does not know, as where the settings name another account, ends nothing; nor does one at a price that is not known.
func TestFollowingWhatStripeDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := paymenttest.New(t, time.Now)
	b := w.billing(t, server)
	tenant := w.newTenant(t)
	url, _, err := b.Checkout(t.Context(), commands.By{}, checkoutOf(tenant, events.StandardPlan))
	if err != nil {
		t.Fatal(err)
	}
	id := server.Pay(url)
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
		t.Fatal(err)
	}
	elsewhere := w.billing(t, paymenttest.New(t, time.Now))
	if err := elsewhere.Follow(t.Context(), tenant.TenantID, ""); commands.KindOf(err) != commands.NotFound {
		t.Errorf("got %v", err)
	}
	server.AddPrice("price_3", "month")
	server.Change(id, func(s *paymenttest.Subscription) { s.Price = "price_3" })
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err == nil {
		t.Error("a price that is not known is followed")
	}
	state, err := commands.ReadTenant(t.Context(), w.writer, tenant.TenantID)
	if err != nil || state.Subscription.Plan != events.StandardPlan || state.Subscription.Status != events.Active {
		t.Errorf("the tenant has %+v: %v", state.Subscription, err)
	}
}

// A customer that Stripe does not know is a conflict for a checkout, and makes room for another one once that is followed.
func TestACustomerThatStripeDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.newTenant(t)
	if _, _, err := w.billing(t, paymenttest.New(t, time.Now)).Checkout(t.Context(), commands.By{}, checkoutOf(tenant, events.StandardPlan)); err != nil {
		t.Fatal(err)
	}
	server := paymenttest.New(t, time.Now)
	b := w.billing(t, server)
	for _, plan := range []events.Plan{events.StandardPlan, events.EnhancedPlan} {
		if _, _, err := b.Checkout(t.Context(), commands.By{}, checkoutOf(tenant, plan)); commands.KindOf(err) != commands.Conflict {
			t.Errorf("a checkout of %s: %v", plan, err)
		}
	}
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Checkout(t.Context(), commands.By{}, checkoutOf(tenant, events.StandardPlan)); err != nil {
		t.Error(err)
	}
}

// Of several subscriptions the noted one counts, as long as it can be managed; the end of an older one takes no plan away. A checkout changes the one
// that counts.
func TestFollowingSeveralSubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := paymenttest.New(t, time.Now)
	b := w.billing(t, server)
	tenant := w.newTenant(t)
	customer := server.AddCustomer(map[string]string{"flagledger_tenant": tenant.TenantID})
	first := server.Subscribe(customer, "price_1")
	has := func(plan events.Plan, status events.SubscriptionStatus) {
		t.Helper()
		if err := b.Follow(t.Context(), "", customer); err != nil {
			t.Error(err)
		}
		state, err := commands.ReadTenant(t.Context(), w.writer, tenant.TenantID)
		if err != nil || state.Subscription.Plan != plan || state.Subscription.Status != status {
			t.Errorf("the tenant has %+v, want %s %s: %v", state.Subscription, plan, status, err)
		}
	}
	has(events.StandardPlan, events.Active)
	second := server.Subscribe(customer, "price_2")
	has(events.StandardPlan, events.Active)
	if _, kind, err := b.Checkout(t.Context(), commands.By{}, checkoutOf(tenant, events.EnhancedPlan)); err != nil || kind != commands.PlanChangeCheckout {
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
