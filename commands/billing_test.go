package commands_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/commands"
	"flagledger/commands/billing"
	"flagledger/commands/jobs"
	"flagledger/commands/payment"
	"flagledger/commands/payment/paymenttest"
	"flagledger/commands/writer"
	"flagledger/events"
)

// till is Stripe with calls as steps, whose subscription answers may be delayed.
type till struct {
	billing.Payments
	*steps
	read func() // called after the subscriptions are read
}

func (p till) NewCustomer(ctx context.Context, key, tenantID string) (string, error) {
	if err := p.take("customer"); err != nil {
		return "", err
	}
	return p.Payments.NewCustomer(ctx, key, tenantID)
}

func (p till) Checkout(ctx context.Context, key string, c billing.CheckoutPage) (string, error) {
	if err := p.take("page"); err != nil {
		return "", err
	}
	return p.Payments.Checkout(ctx, key, c)
}

func (p till) Subscriptions(ctx context.Context, customerID string) ([]billing.PaymentSubscription, error) {
	list, err := p.Payments.Subscriptions(ctx, customerID)
	if p.read != nil {
		p.read()
	}
	return list, err
}

// billing sells standard and enhanced at a Stripe of this test.
func (w *world) billing(t *testing.T, server *paymenttest.Server) *billing.Billing {
	t.Helper()
	server.AddPrice("price_1", "month")
	server.AddPrice("price_2", "month")
	stripe := payment.Open(
		payment.Settings{
			SecretKey:     paymenttest.SecretKey,
			WebhookSecret: paymenttest.WebhookSecret,
			Base:          server.URL(),
			Currency:      "eur",
		},
	)
	b := &billing.Billing{
		Writer:   w.writer,
		Payments: till{stripe, w.steps, nil},
		Now:      server.Now,
		Log:      slog.New(slog.DiscardHandler),
	}
	queue, err := jobs.Open(w.pool)
	if err != nil {
		t.Fatal(err)
	}
	b.Events = jobs.NewPayments(queue, time.Now)
	if b.Prices, err = billing.ParsePlanPrices("standard=price_1,enhanced=price_2"); err != nil {
		t.Fatal(err)
	}
	if b.ReturnURLs, err = billing.NewReturnURLs([]string{"https://app.example.com"}, false); err != nil {
		t.Fatal(err)
	}
	return b
}

// newBilling returns a world with a Stripe of its own.
func newBilling(t *testing.T) (*world, *paymenttest.Server, *billing.Billing) {
	t.Helper()
	w, server := newWorld(t), paymenttest.New(t, paymenttest.Clock())
	return w, server, w.billing(t, server)
}

func checkoutOf(tenant commands.TenantRef, plan events.Plan) billing.Checkout {
	return billing.Checkout{
		TenantID:   tenant.TenantID,
		Type:       billing.SubscriptionCheckout,
		Plan:       plan,
		SuccessURL: "https://app.example.com",
		CancelURL:  "https://app.example.com",
		Key:        tenant.TenantID,
	}
}

// pay returns a new tenant that has paid for standard, and its subscription.
func (w *world) pay(
	t *testing.T, b *billing.Billing, server *paymenttest.Server,
) (tenant commands.TenantRef, subscription string) {
	t.Helper()
	tenant = w.newTenant(t)
	url, _, err := b.Checkout(t.Context(), writer.By{}, checkoutOf(tenant, events.StandardPlan))
	if err != nil {
		t.Fatal(err)
	}
	return tenant, server.Pay(url)
}

// If any step of a first checkout fails, nothing is sold, and the retry has one customer.
func TestACheckoutThatFails(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	all := []string{"customer", "append tenant.subscription_changed", "page"}
	for failing := range len(all) + 1 {
		tenant := w.newTenant(t)
		*w.steps = steps{failing: failing}
		_, _, err := b.Checkout(t.Context(), writer.By{}, checkoutOf(tenant, events.StandardPlan))
		if errors.Is(err, errStep) != (failing > 0) {
			t.Errorf("step %d: %v", failing, err)
		}
		if failing > 0 {
			*w.steps = steps{}
			if _, _, err := b.Checkout(t.Context(), writer.By{}, checkoutOf(tenant, events.StandardPlan)); err != nil {
				t.Error(err)
			}
		}
		want := all
		if failing == len(all) { // the customer is known then
			want = all[2:]
		}
		if diff := cmp.Diff(want, w.taken); diff != "" {
			t.Errorf("step %d: the steps (-want +got):\n%s", failing, diff)
		}
		state, err := writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
		if err != nil || state.Subscription.CustomerID == "" || state.Subscription.Plan != events.FreePlan ||
			state.Subscription.Status != events.NoSubscription {
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

// An ended sandbox, which refuses changes, can check out for the first time and get its plan.
func TestPayingForASandboxThatEnded(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	tenant := w.newTenant(t)
	w.quotas.refusal = commands.EndedSandbox(time.Now().Add(-time.Hour), time.Now())
	_, _, err := writer.Do(t.Context(), w.writer, writer.By{}, commands.UpdateTenant{TenantRef: tenant})
	if commands.KindOf(err) != commands.Forbidden {
		t.Fatalf("a change: %v", err)
	}
	url, _, err := b.Checkout(t.Context(), writer.By{}, checkoutOf(tenant, events.StandardPlan))
	if err != nil {
		t.Fatal(err)
	}
	server.Pay(url)
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
		t.Fatal(err)
	}
	state, err := writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
	if err != nil || state.Subscription.Plan != events.StandardPlan || state.Subscription.Status != events.Active {
		t.Errorf("the tenant has %+v: %v", state.Subscription, err)
	}
}

// A checkout with a customer that Stripe does not know conflicts, until billing is followed: then a new customer is
// created.
func TestACustomerThatStripeDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant := w.newTenant(t)
	if _, _, err := w.billing(t, paymenttest.New(t, paymenttest.Clock())).
		Checkout(t.Context(), writer.By{}, checkoutOf(tenant, events.StandardPlan)); err != nil {
		t.Fatal(err)
	}
	server := paymenttest.New(t, paymenttest.Clock())
	b := w.billing(t, server)
	for _, plan := range []events.Plan{events.StandardPlan, events.EnhancedPlan} {
		if _, _, err := b.Checkout(t.Context(), writer.By{}, checkoutOf(tenant, plan)); commands.KindOf(err) != commands.Conflict {
			t.Errorf("a checkout of %s: %v", plan, err)
		}
	}
	if err := b.Follow(t.Context(), tenant.TenantID, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Checkout(t.Context(), writer.By{}, checkoutOf(tenant, events.StandardPlan)); err != nil {
		t.Error(err)
	}
}

// A retried checkout, as after a lost response, returns the first page, which can still be paid.
func TestACheckoutThatIsMadeAgain(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	now := time.Now()
	b.Now = func() time.Time { return now }
	c := checkoutOf(w.newTenant(t), events.StandardPlan)
	first, _, err := b.Checkout(t.Context(), writer.By{}, c)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := b.Checkout(t.Context(), writer.By{}, c)
	if err != nil || second != first || !server.Payable(second) {
		t.Errorf("the pages are %s and %s, which can be paid on: %v; %v", first, second, server.Payable(second), err)
	}
}

// A failure that Stripe repeats for a key lasts only some minutes, for a customer and for a page.
func TestAFailureOfStripePasses(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	now := time.Now()
	b.Now = func() time.Time { return now }
	customer, page := checkoutOf(w.newTenant(t), events.StandardPlan), checkoutOf(w.newTenant(t), events.StandardPlan)
	first := page
	first.Key = "first"
	if _, _, err := b.Checkout(t.Context(), writer.By{}, first); err != nil {
		t.Fatal(err)
	}
	// The tenant of page is now a customer.
	for what, c := range map[string]billing.Checkout{"a customer": customer, "a page": page} {
		server.Break(paymenttest.Recorded)
		if _, _, err := b.Checkout(t.Context(), writer.By{}, c); commands.KindOf(err) != commands.Unavailable {
			t.Errorf("%s, while Stripe fails: %v", what, err)
		}
		server.Break(paymenttest.Working)
		now = now.Add(10 * time.Minute)
		if _, _, err := b.Checkout(t.Context(), writer.By{}, c); err != nil {
			t.Errorf("%s, later: %v", what, err)
		}
	}
}

// Two concurrent checkouts with different keys that each create a customer end with the one recorded first.
func TestCheckoutsAtOnceHaveOneCustomer(t *testing.T) {
	t.Parallel()
	w, server, b := newBilling(t)
	tenant := w.newTenant(t)
	late := *b
	late.Payments = rival{b.Payments, func() {
		earlier := *b
		earlier.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		if _, _, err := earlier.Checkout(t.Context(), writer.By{}, checkoutOf(tenant, events.StandardPlan)); err != nil {
			t.Error(err)
		}
	}}
	checkout := checkoutOf(tenant, events.StandardPlan)
	checkout.Key = "late"
	if _, _, err := late.Checkout(t.Context(), writer.By{}, checkout); err != nil {
		t.Fatal(err)
	}
	state, err := writer.ReadTenant(t.Context(), w.writer, tenant.TenantID)
	if err != nil {
		t.Fatal(err)
	}
	pages := server.Calls("POST", "/v1/checkout/sessions")
	for _, page := range pages {
		if customer := page.Form.Get("customer"); customer != state.Subscription.CustomerID {
			t.Errorf("a page is of %s, the tenant is %s", customer, state.Subscription.CustomerID)
		}
	}
	if len(pages) != 2 {
		t.Errorf("there are %d pages", len(pages))
	}
}

// rival is Stripe with a concurrent action after a customer was created.
type rival struct {
	billing.Payments
	then func()
}

func (r rival) NewCustomer(ctx context.Context, key, tenantID string) (string, error) {
	id, err := r.Payments.NewCustomer(ctx, key, tenantID)
	r.then()
	return id, err
}
