package http_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/payment/paymenttest"
	"flagledger/events"
)

const webhookPath = "/api/v1/billing/webhook"

// changes lists a tenant's subscriptions in order: plan, status and whether it ends with its period.
func (s shop) changes(tenantID string) (list []string) {
	s.T.Helper()
	for r, err := range s.Store().Read(s.T.Context(), events.TenantStream(tenantID), 0) {
		if err != nil {
			s.T.Fatal(err)
		}
		if fact, ok := r.Fact.(events.SubscriptionChanged); ok {
			list = append(list, fmt.Sprintf("%s %s %v", fact.To.Plan, fact.To.Status, fact.To.CancelAtPeriodEnd))
		}
	}
	return list
}

// subscriber is a person whose tenant has a subscription to standard that every part knows.
func (s shop) subscriber() (me *nodetest.Client, subscription string) {
	s.T.Helper()
	me = s.SignUp(nodetest.Address())
	url, _ := checkout(me, purchase("standard"))
	subscription = s.stripe.Pay(url)
	s.deliver()
	subscribed(me, "standard", "active")
	return me, subscription
}

// Late, repeated, reordered or concurrent events leave the state at Stripe, with one fact for each change.
func TestEventsComeInAnyOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	second := shop{s.SecondNode(), s.stripe}
	me, subscription := s.subscriber()
	before := s.changes(me.Tenant)
	s.stripe.FailPayment(subscription)
	s.stripe.Change(subscription, func(sub *paymenttest.Subscription) { sub.Status = "active" })
	s.stripe.Change(subscription, func(sub *paymenttest.Subscription) { sub.Price = "price_enterprise_year" })
	s.stripe.Change(subscription, func(sub *paymenttest.Subscription) { sub.CancelAtEnd = true })
	list := s.stripe.Events()
	list = append(list, list...)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	var all sync.WaitGroup
	for i, e := range list {
		to := s
		if i%2 == 1 {
			to = second
		}
		all.Go(func() {
			if status := s.stripe.Deliver(to.URL+webhookPath, e); status != 200 {
				t.Errorf("%s is answered with %d", e.Type, status)
			}
		})
	}
	all.Wait()
	s.JobsDone()
	if diff := cmp.Diff(append(before, "enterprise active true"), s.changes(me.Tenant)); diff != "" {
		t.Errorf("the subscriptions (-want +got):\n%s", diff)
	}
}

// A repeated event is acknowledged and ignored.
func TestAnEventIsFollowedOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	_, subscription := s.subscriber()
	s.stripe.FailPayment(subscription)
	list := s.stripe.Events()
	deliver := func() int {
		t.Helper()
		for _, e := range list {
			if status := s.stripe.Deliver(s.URL+webhookPath, e); status != 200 {
				t.Errorf("%s is answered with %d", e.Type, status)
			}
		}
		s.JobsDone()
		pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		var jobs int
		if err := pool.QueryRow(t.Context(), `select count(*) from jobs.river_job where kind = 'payments.follow' and args ->> 'cause' not like 'comparison %'`).
			Scan(&jobs); err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	first := deliver()
	nodetest.Same(t, "the jobs when all came again", deliver(), first)
}

// While a subscription changes continuously, its followers end with its final state.
func TestTheLastStateIsKept(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	second := shop{s.SecondNode(), s.stripe}
	me, subscription := s.subscriber()
	prices := []string{"price_enhanced", "price_enterprise", "price_standard"}
	var all sync.WaitGroup
	for i := range 30 {
		s.stripe.Change(subscription,
			func(sub *paymenttest.Subscription) { sub.Price, sub.CancelAtEnd = prices[i%3], i%2 == 0 })
		for _, e := range s.stripe.Events() {
			all.Go(func() { s.stripe.Deliver([]string{s.URL, second.URL}[i%2]+webhookPath, e) })
		}
	}
	all.Wait()
	s.JobsDone()
	if list := s.changes(me.Tenant); list[len(list)-1] != "standard active false" {
		t.Errorf("it ends with %v", list)
	}
}

func TestForgedEventsAreRefused(t *testing.T) {
	t.Parallel()
	book := &nodetest.LogBook{}
	stripe := paymenttest.New(t, time.Now)
	limits := nodetest.Generous
	limits.Anonymous = 50
	s := shop{nodetest.Start(t, nodetest.Database(t), settings.Config{
		Environment: "development",
		Limits:      limits,
		Payment: settings.Payment{
			SecretKey:     paymenttest.SecretKey,
			WebhookSecret: paymenttest.WebhookSecret,
			Base:          stripe.URL(),
			PlanPrices:    "standard=price_1",
		},
	}, book.Logger()), stripe}
	body := []byte(`{"id":"evt_forged","type":"customer.subscription.updated","data":{"object":{"customer":"cus_1"}}}`)
	nobody := s.Anonymous()
	now := time.Now()
	for _, signature := range []string{"", "x", "t=1,v1=00", paymenttest.Sign(body, now.Add(-6*time.Minute)), paymenttest.Sign(body, now.Add(6*time.Minute)), paymenttest.Sign([]byte("{}"), now)} {
		nobody.Call("POST", webhookPath, body, "Stripe-Signature", signature).Refused(400)
	}
	unreadable := []byte(`{"id":""}`)
	nodetest.Same(t, "what is wrong with an event that is signed and is none",
		nobody.Call("POST", webhookPath, unreadable, "Stripe-Signature", paymenttest.Sign(unreadable, now)).Refused(400).Object()["detail"],
		"the message is not a readable event of the payment provider")
	large := []byte(`{"id":"evt_large","pad":"` + strings.Repeat("x", 256<<10) + `"}`)
	nodetest.Same(t, "what is wrong with a large event",
		nobody.Call("POST", webhookPath, large, "Stripe-Signature", paymenttest.Sign(large, now)).Refused(400).Object()["detail"],
		"the body is larger than 256 KiB")
	refused := 0
	for range 100 {
		if nobody.Call("POST", webhookPath, body, "Stripe-Signature", paymenttest.Sign([]byte("{}"), now)).Status == 429 {
			refused++
		}
	}
	if refused == 0 {
		t.Error("wrongly signed calls are not limited")
	}
	if calls := stripe.Calls("GET", "/v1/customers/cus_1"); len(calls) > 0 {
		t.Error("a forged event is followed")
	}
	// Signed events are still accepted.
	nobody.Call("POST", webhookPath, body, "Stripe-Signature", paymenttest.Sign(body, now)).Want(200)
	for line := range strings.Lines(book.String()) {
		if strings.Contains(line, webhookPath) && !strings.Contains(line, `"level":"DEBUG"`) &&
			strings.Contains(line, `"status":4`) {
			t.Errorf("a forged event is logged: %s", line)
		}
	}
}

// If events are not configured, calls of the webhook are limited too, and leave no line in the log.
func TestEventsThatNobodyCanSign(t *testing.T) {
	t.Parallel()
	for name, payment := range map[string]settings.Payment{
		"no Stripe":         {},
		"no webhook secret": {SecretKey: paymenttest.SecretKey, Base: paymenttest.New(t, time.Now).URL(), PlanPrices: "standard=price_1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := &nodetest.LogBook{}
			limits := nodetest.Generous
			limits.Anonymous = 100 // the test calls health while the service starts
			s := nodetest.Start(t, nodetest.Database(t),
				settings.Config{Environment: "development", Limits: limits, Payment: payment}, book.Logger())
			nobody := s.Anonymous()
			signature := fmt.Sprintf("t=%d,v1=00", time.Now().Unix())
			nobody.Call("POST", webhookPath, `{}`, "Stripe-Signature", signature).Refused(503)
			for i := 0; ; i++ {
				if nobody.Call("POST", webhookPath, `{}`, "Stripe-Signature", signature).Status == 429 {
					break
				}
				if i > 3*limits.Anonymous { // two minutes at most
					t.Fatal("calls are not limited")
				}
			}
			// which does not get as far
			nobody.Call("POST", webhookPath, `{}`, "Stripe-Signature", signature, "X-Correlation-Id", strings.Repeat("x", 129)).
				Refused(400)
			requests := 0
			for line := range strings.Lines(book.String()) {
				if strings.Contains(line, webhookPath) {
					requests++
				}
				if !strings.Contains(line, `"level":"DEBUG"`) &&
					(strings.Contains(line, webhookPath) || strings.Contains(line, `"msg":"unavailable"`)) {
					t.Errorf("a call is logged: %s", line)
				}
			}
			if requests == 0 {
				t.Error("no call is in the log of debugging")
			}
		})
	}
}

// The metadata that the service recorded decides to whom a subscription belongs.
func TestEventsOfStrangersChangeNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me := s.SignUp(nodetest.Address())
	s.stripe.Subscribe(s.stripe.AddCustomer(nil), "price_standard")
	s.stripe.Subscribe(s.stripe.AddCustomer(map[string]string{"tenant": me.Tenant, "client_reference_id": me.Tenant}),
		"price_standard")
	s.stripe.Subscribe(s.stripe.AddCustomer(map[string]string{"flagledger_tenant": "another service's"}), "price_standard")
	s.deliver()
	if list := s.changes(me.Tenant); len(list) > 0 {
		t.Errorf("the tenant has %v", list)
	}
	// A subscription that the operator created at Stripe for the tenant counts.
	s.stripe.Subscribe(s.stripe.AddCustomer(map[string]string{"flagledger_tenant": me.Tenant}), "price_enterprise_year")
	s.deliver()
	subscribed(me, "enterprise", "active")
}

// Events during an outage of Stripe are accepted, and followed after it.
func TestEventsOutliveAnOutageOfStripe(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me, subscription := s.subscriber()
	s.stripe.FailPayment(subscription)
	s.stripe.Break(paymenttest.Failing)
	list := s.stripe.Events()
	for _, e := range list {
		if status := s.stripe.Deliver(s.URL+webhookPath, e); status != 200 {
			t.Errorf("%s is answered with %d", e.Type, status)
		}
	}
	s.Eventually("Stripe has been asked in vain",
		func() bool { return len(s.stripe.Calls("GET", "/v1/subscriptions")) > 2 })
	s.stripe.Break(paymenttest.Working)
	subscribed(me, "standard", "past_due")
}

// onAnotherDay restarts the node, which compares all subscriptions again.
func (s shop) onAnotherDay(t *testing.T, change ...func(*settings.Config)) shop {
	t.Helper()
	s.Node.Stop()
	sql(s.Service, `delete from jobs.river_job`)
	return shopOn(t, s.DatabaseURL, s.stripe, change...)
}

// The daily comparison repairs what no event reported.
func TestTheComparisonMends(t *testing.T) {
	t.Parallel()
	database, stripe := nodetest.Database(t), paymenttest.New(t, time.Now)
	s := shopOn(t, database, stripe)
	me, subscription := s.subscriber()
	stripe.End(subscription)
	stripe.Events()                                                              // they are never delivered
	later := s.onAnotherDay(t, func(c *settings.Config) { c.PublicURL = s.URL }) // which issues the tokens
	me.Service = later.Service
	subscribed(me, "free", "canceled")
}

// A deleted tenant pays no longer, and an open page cannot be paid.
func TestADeletedTenantPaysNoLonger(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stripe.AddProduct("prod_1")
	me, subscription := s.subscriber()
	product, _ := checkout(me, purchase("", "planId", nil, "type", "payment", "productId", "prod_1", "amount", 4900))
	other := s.SignUp(nodetest.Address())
	plan, _ := checkout(other, purchase("standard"))
	theirs, _ := checkout(s.SignUp(nodetest.Address()), purchase("standard"))
	for _, c := range []*nodetest.Client{me, other} {
		c.Call("DELETE", "/api/v1/tenants/"+c.Tenant, nil).Want(204)
	}
	s.Eventually("the subscription is cancelled", func() bool { return s.stripe.Status(subscription) == "canceled" })
	s.Eventually("the pages are closed", func() bool { return !s.stripe.Payable(product) && !s.stripe.Payable(plan) })
	s.deliver()
	if !s.stripe.Payable(theirs) {
		t.Error("the page of another tenant is closed")
	}
}

// A tenant has one open page for a subscription, and none once it has one, so that it never pays twice.
func TestOnePageForAPlan(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stripe.AddProduct("prod_1")
	me := s.SignUp(nodetest.Address())
	product, _ := checkout(me, purchase("", "planId", nil, "type", "payment", "productId", "prod_1", "amount", 4900))
	first, _ := checkout(me, purchase("standard"))
	second, _ := checkout(me, purchase("enhanced"))
	theirs, _ := checkout(s.SignUp(nodetest.Address()), purchase("standard"))
	payable := func(when string, want ...bool) {
		t.Helper()
		nodetest.Same(t, "what can be paid for "+when,
			[]bool{s.stripe.Payable(first), s.stripe.Payable(second), s.stripe.Payable(product), s.stripe.Payable(theirs)}, want)
	}
	payable("after a second checkout", false, true, true, true)
	customer := s.stripe.Calls("POST", "/v1/checkout/sessions")[0].Form.Get("customer")
	s.stripe.Subscribe(customer, "price_standard") // as on two pages that were made at once
	s.deliver()
	subscribed(me, "standard", "active")
	payable("with a subscription", false, false, true, true)
}

// The daily comparison also cancels late subscriptions of a deleted tenant, and those that could not be cancelled at
// once.
func TestTheComparisonIncludesDeletedTenants(t *testing.T) {
	t.Parallel()
	database, stripe := nodetest.Database(t), paymenttest.New(t, time.Now)
	s := shopOn(t, database, stripe)
	me, subscription := s.subscriber()
	customer := stripe.Calls("POST", "/v1/checkout/sessions")[0].Form.Get("customer")
	me.Call("DELETE", "/api/v1/tenants/"+me.Tenant, nil).Want(204)
	s.Eventually("the subscription is cancelled", func() bool { return stripe.Status(subscription) == "canceled" })
	left := stripe.Subscribe(customer, "price_standard")
	stripe.Events() // they are never delivered
	later := s.onAnotherDay(t)
	later.Eventually("the subscription that was left is cancelled",
		func() bool { return stripe.Status(left) == "canceled" })
}

// After the deletion of a customer at Stripe, a new one can be created.
func TestADeletedCustomer(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me, _ := s.subscriber()
	payer := func() (customer string) { // of the last page
		for _, call := range s.stripe.Calls("POST", "/v1/checkout/sessions") {
			if named := call.Form.Get("customer"); named != "" {
				customer = named
			}
		}
		return customer
	}
	customer := payer()
	s.stripe.DeleteCustomer(customer)
	late, _ := checkout(me, purchase("standard")) // before the event arrives
	nodetest.Same(t, "the customer of the new page", payer() == customer, false)
	nodetest.Same(t, "it can be paid", s.stripe.Payable(late), true)
	s.deliver()
	subscribed(me, "free", "canceled")
	url, _ := checkout(me, purchase("standard"))
	s.stripe.Pay(url)
	s.deliver()
	subscribed(me, "standard", "active")
	s.stripe.DeleteCustomer(payer())
	me.Call("POST", portalPath, map[string]any{"returnUrl": "https://app.example.com"}).Refused(409)
}

func TestSubscriptionShowsEndOnlyAtPeriodEnd(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me, subscription := s.subscriber()
	ends := func(at func(end time.Time) time.Time) bool {
		s.stripe.Change(subscription, func(sub *paymenttest.Subscription) { sub.CancelAt = at(sub.End) })
		s.deliver()
		return me.Call("GET", billingPath+"/subscription", nil).Want(200).Object()["cancelAtPeriodEnd"].(bool)
	}
	nodetest.Same(t, "at the end of the period", ends(func(end time.Time) time.Time { return end }), true)
	nodetest.Same(t, "in a later period", ends(func(end time.Time) time.Time { return end.AddDate(0, 2, 0) }), false)
	nodetest.Same(t, "never", ends(func(time.Time) time.Time { return time.Time{} }), false)
}

// The customer's own metadata, not the event, decides which tenant it belongs to.
func TestPaymentEventChangesOnlyCustomersTenant(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me, subscription := s.subscriber()
	customer := s.stripe.Calls("POST", "/v1/checkout/sessions")[0].Form.Get("customer")
	other := s.SignUp(nodetest.Address())
	send := func(id, object string) *nodetest.Answer {
		body := []byte(`{"id":"` + id + `","type":"customer.subscription.updated","data":{"object":` + object + `}}`)
		return s.Anonymous().Call("POST", webhookPath, body, "Stripe-Signature", paymenttest.Sign(body, s.stripe.Now()))
	}
	send("evt_other",
		`{"id":"`+subscription+`","customer":"`+customer+`","metadata":{"flagledger_tenant":"`+other.Tenant+`"}}`).Want(200)
	s.JobsDone()
	subscribed(other, "free", "active")
	subscribed(me, "standard", "active")
	for _, object := range []string{`{"customer":"cus_\u0000"}`, `{"customer":"cus_1","metadata":{"flagledger_tenant":"a\u0000"}}`} {
		send("evt_nul", object).Refused(400)
	}
	send(`evt\u0000`, `{}`).Refused(400)
}
