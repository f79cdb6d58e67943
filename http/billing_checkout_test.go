package http_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/commands/payment/paymenttest"
)

const (
	checkoutPath = "/api/v1/billing/checkout"
	portalPath   = "/api/v1/billing/portal"
)

// shop is a service with a Stripe account.
type shop struct {
	*nodetest.Service
	stripe *paymenttest.Server
}

// newShop starts a service that sells standard and enhanced monthly, and enterprise also yearly.
func newShop(t *testing.T, change ...func(*settings.Config)) shop {
	t.Helper()
	return shopOn(t, nodetest.Database(t), paymenttest.New(t, paymenttest.Clock()), change...)
}

func shopOn(t *testing.T, database string, stripe *paymenttest.Server, change ...func(*settings.Config)) shop {
	t.Helper()
	for price, interval := range map[string]string{"price_standard": "month", "price_enhanced": "month", "price_enterprise": "month", "price_enterprise_year": "year"} {
		stripe.AddPrice(price, interval)
	}
	c := settings.Config{
		Now:         stripe.Now,
		Environment: "development",
		Origins:     []string{"https://app.example.com"},
		Payment: settings.Payment{
			SecretKey:     paymenttest.SecretKey,
			WebhookSecret: paymenttest.WebhookSecret,
			Base:          stripe.URL(),
			PlanPrices:    "standard=price_standard,enhanced=price_enhanced,enterprise=price_enterprise,enterprise=price_enterprise_year",
		},
	}
	for _, f := range change {
		f(&c)
	}
	return shop{nodetest.Start(t, database, c, nodetest.Log(t)), stripe}
}

// purchase returns the body of a checkout of a plan, with changed members.
func purchase(plan string, changes ...any) map[string]any {
	body := map[string]any{
		"type":       "subscription",
		"planId":     plan,
		"successUrl": "https://app.example.com/done",
		"cancelUrl":  "https://app.example.com/billing",
	}
	for i := 0; i < len(changes); i += 2 {
		if body[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(body, changes[i].(string))
		}
	}
	return body
}

// checkout starts a checkout, and returns the page's address and the type.
func checkout(me *nodetest.Client, body any) (url, kind string) {
	me.Service.T.Helper()
	answer := me.Call("POST", checkoutPath, body).Want(200).Object()
	nodetest.Members(me.Service.T, "the answer", answer, "checkoutUrl", "type")
	return answer["checkoutUrl"].(string), answer["type"].(string)
}

// deliver sends all pending Stripe events and waits until they are followed.
func (s shop) deliver() {
	s.T.Helper()
	for _, e := range s.stripe.Events() {
		if status := s.stripe.Deliver(s.URL+webhookPath, e); status != 200 {
			s.T.Fatalf("the event %s is answered with %d", e.Type, status)
		}
	}
	s.JobsDone()
}

// subscription waits until the node shows a subscription of the tenant.
func subscribed(me *nodetest.Client, plan, status string) {
	me.Service.T.Helper()
	var got any
	me.Service.Eventually("the tenant has the plan "+plan+", "+status, func() bool {
		got = me.Call("GET", "/api/v1/tenants/"+me.Tenant, nil).Want(200).Object()["subscription"]
		shown := got.(map[string]any)
		return shown["plan"] == plan && shown["status"] == status
	})
}

func TestCheckoutRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me := s.SignUp(nodetest.Address())
	payment := func(changes ...any) map[string]any {
		return purchase(
			"",
			append([]any{"planId", nil, "type", "payment", "productId", "prod_1", "amount", 4900}, changes...)...)
	}
	for _, c := range []struct {
		body   any
		fields []string
	}{
		{map[string]any{}, []string{"type", "successUrl", "cancelUrl"}},
		{purchase("premium"), []string{"planId"}},
		{purchase("gold"), []string{"planId"}},
		{purchase("sandbox"), []string{"planId"}}, // which has no price here
		{purchase("standard", "type", 7, "planId", 8), []string{"type", "planId"}},
		{payment("amount", 10.5), []string{"amount"}},
		{payment("amount", "10"), []string{"amount"}},
		{purchase("standard", "discounts", []any{map[string]any{}}), []string{"discounts[0].coupon"}},
		{purchase("standard", "priceId", "price_1"), []string{"priceId"}},
		{purchase("standard", "metadata", map[string]any{"flagledger_tenant": "x"}), []string{"metadata"}},
		{purchase("standard", "promoCode", "NONE"), []string{"promoCode"}},
		{purchase("standard", "discounts", []any{map[string]any{"coupon": "none"}}), []string{"discounts[0].coupon"}},
		{payment(), []string{"productId"}}, // which Stripe does not have
	} {
		me.Call("POST", checkoutPath, c.body).Refused(422, c.fields...)
	}
	me.Call("POST", checkoutPath, purchase("standard"), "X-Tenant-ID", "").Refused(400)
	me.Call("POST", portalPath, map[string]any{"returnUrl": "https://evil.example"}).Refused(422, "returnUrl")
	me.Join("developer").Call("POST", checkoutPath, purchase("standard")).Refused(403)
	me.Join("developer").Call("POST", portalPath, map[string]any{"returnUrl": "https://app.example.com"}).Refused(403)
}

// Calls to Stripe contain the plan of the body and the tenant.
func TestCheckoutTellsStripe(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stripe.AddProduct("prod_1")
	s.stripe.AddCoupon("LAUNCH25")
	promotion := s.stripe.AddPromotion("SPRING")
	for _, c := range []struct {
		body map[string]any
		want map[string]string // of the form for Stripe
		kind string
	}{
		{purchase("standard", "referralId", "partner-7"), map[string]string{
			"mode": "subscription", "line_items[0][price]": "price_standard", "client_reference_id": "partner-7", "metadata[referral]": "partner-7",
			"subscription_data[metadata][referral]": "partner-7", "success_url": "https://app.example.com/done", "cancel_url": "https://app.example.com/billing",
		}, "subscription"},
		{purchase("enterprise", "affiliate_referral", "partner-8"), map[string]string{"line_items[0][price]": "price_enterprise", "client_reference_id": "partner-8"}, "subscription"},
		{purchase("standard", "referralId", "p", "affiliate_referral", "p"), map[string]string{"client_reference_id": "p"}, "subscription"},
		{purchase("standard", "promoCode", "spring"), map[string]string{"discounts[0][promotion_code]": promotion, "discounts[0][coupon]": ""}, "subscription"},
		{purchase("standard", "discounts", []any{map[string]any{"coupon": "LAUNCH25"}}), map[string]string{"discounts[0][coupon]": "LAUNCH25", "discounts[0][promotion_code]": ""}, "subscription"},
		{purchase("", "planId", nil, "type", "payment", "productId", "prod_1", "amount", 4900), map[string]string{
			"mode": "payment", "line_items[0][price_data][product]": "prod_1", "line_items[0][price_data][unit_amount]": "4900", "line_items[0][price_data][currency]": "usd",
		}, "payment"},
	} {
		me := s.SignUp(nodetest.Address())
		if _, kind := checkout(me, c.body); kind != c.kind {
			t.Errorf("%v has the type %s", c.body, kind)
		}
		calls := s.stripe.Calls("POST", "/v1/checkout/sessions")
		form := calls[len(calls)-1].Form
		c.want["metadata[flagledger_tenant]"] = me.Tenant
		for name, value := range c.want {
			if form.Get(name) != value {
				t.Errorf("%v tells Stripe %s = %q, want %q", c.body, name, form.Get(name), value)
			}
		}
	}
}

// A change of plan requests the price of the plan, with its discount.
func TestAPlanChangeTellsStripe(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stripe.AddCoupon("LAUNCH25")
	promotion := s.stripe.AddPromotion("SPRING")
	me, subscription := s.subscriber()
	const confirm = "flow_data[subscription_update_confirm]"
	for _, c := range []struct {
		body map[string]any
		want map[string]string
	}{
		{purchase("enhanced", "promoCode", "spring"), map[string]string{"[items][0][price]": "price_enhanced", "[discounts][0][promotion_code]": promotion, "[discounts][0][coupon]": ""}},
		{purchase("enterprise", "discounts", []any{map[string]any{"coupon": "LAUNCH25"}}), map[string]string{"[items][0][price]": "price_enterprise", "[discounts][0][promotion_code]": "", "[discounts][0][coupon]": "LAUNCH25"}},
	} {
		if _, kind := checkout(me, c.body); kind != "plan_change" {
			t.Errorf("%v has the type %s", c.body, kind)
		}
		calls := s.stripe.Calls("POST", "/v1/billing_portal/sessions")
		form := calls[len(calls)-1].Form
		c.want["[subscription]"] = subscription
		for name, value := range c.want {
			if form.Get(confirm+name) != value {
				t.Errorf("%v tells Stripe %s = %q, want %q", c.body, name, form.Get(confirm+name), value)
			}
		}
	}
}

// A customer belongs only to the tenant that we recorded, whatever other metadata says.
func TestACustomerIsOneTenantsAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	owner, thief, newcomer := s.SignUp(nodetest.Address()), s.SignUp(nodetest.Address()), s.SignUp(nodetest.Address())
	checkout(owner, purchase("standard"))
	customer := s.stripe.Calls("POST", "/v1/checkout/sessions")[0].Form.Get("customer")
	for _, id := range []string{customer, "cus_none", s.stripe.AddCustomer(nil), s.stripe.AddCustomer(map[string]string{"tenant": thief.Tenant})} {
		before := len(s.stripe.Calls("POST", "/v1/checkout/sessions"))
		refusal := thief.Call("POST", checkoutPath, purchase("standard", "customerId", id)).Refused(422, "customerId")
		nodetest.Same(t, "what is said of "+id, refusal.Object()["errors"],
			map[string]string{"customerId": "is not the customer of the tenant"})
		if len(s.stripe.Calls("POST", "/v1/checkout/sessions")) != before {
			t.Errorf("a page was made for %s", id)
		}
	}
	thief.Call("POST", "/api/billing/checkout", purchase("free", "customerId", customer)).Refused(422, "customerId")
	thief.Call("POST", portalPath, map[string]any{"returnUrl": "https://app.example.com"}).Refused(409)
	checkout(owner, purchase("standard", "customerId", customer))
	owner.Call("POST", checkoutPath, purchase("standard", "customerId", s.stripe.AddCustomer(map[string]string{"flagledger_tenant": owner.Tenant}))).
		Refused(422, "customerId")
	// One that the operator has made at Stripe for the tenant.
	made := s.stripe.AddCustomer(map[string]string{"flagledger_tenant": newcomer.Tenant})
	checkout(newcomer, purchase("standard", "customerId", made))
	calls := s.stripe.Calls("POST", "/v1/checkout/sessions")
	if got := calls[len(calls)-1].Form.Get("customer"); got != made {
		t.Errorf("the customer is %s, want %s", got, made)
	}
	if url := newcomer.Call("POST", portalPath, map[string]any{"returnUrl": "https://app.example.com"}).Want(200).Object()["portalUrl"].(string); !strings.Contains(
		url, "/p/session/",
	) {
		t.Errorf("the portal is at %s", url)
	}
}

// A repeated request with the same key gets the same response, and Stripe gets the same key, which is not the caller's.
// So do concurrent requests.
func TestACheckoutIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me, key := s.SignUp(nodetest.Address()), uuid.NewString()
	s.stripe.Break(paymenttest.Failing)
	me.Call("POST", checkoutPath, purchase("standard"), "Idempotency-Key", key).Refused(503)
	s.stripe.Break(paymenttest.Working)
	first := me.Call("POST", checkoutPath, purchase("standard"), "Idempotency-Key", key).Want(200)
	repeated := me.Call("POST", checkoutPath, purchase("standard"), "Idempotency-Key", key).Want(200)
	if string(first.Body) != string(repeated.Body) || repeated.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("repeated it is %s, not %s", repeated.Body, first.Body)
	}
	me.Call("POST", checkoutPath, purchase("enhanced"), "Idempotency-Key", key).Refused(422, "Idempotency-Key")
	calls := s.stripe.Calls("POST", "/v1/checkout/sessions")
	if len(calls) != 1 || calls[0].Key == "" || strings.Contains(calls[0].Key, key) {
		t.Errorf("Stripe was called with %+v", calls)
	}
	other := s.SignUp(nodetest.Address())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { other.Call("POST", checkoutPath, purchase("standard")).Want(200) })
	}
	all.Wait()
	customers := map[string]bool{}
	for _, c := range s.stripe.Calls("POST", "/v1/checkout/sessions") {
		if c.Form.Get("metadata[flagledger_tenant]") == other.Tenant {
			customers[c.Form.Get("customer")] = true
		}
	}
	if len(customers) != 1 {
		t.Errorf("the tenant is the customers %v", customers)
	}
}

// From the first checkout to the end, a tenant has what it paid for as soon as Stripe reports it.
func TestASubscriptionsLife(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me := s.SignUp(nodetest.Address())
	url, kind := checkout(me, purchase("standard"))
	if kind != "subscription" {
		t.Errorf("the first checkout is a %s", kind)
	}
	subscribed(me, "free", "active")
	subscription := s.stripe.Pay(url)
	s.deliver()
	subscribed(me, "standard", "active")
	me.Call("POST", checkoutPath, purchase("standard")).Refused(409)

	url, kind = checkout(me, purchase("enhanced"))
	if kind != "plan_change" {
		t.Errorf("the upgrade is a %s", kind)
	}
	form := s.stripe.Calls("POST", "/v1/billing_portal/sessions")[0].Form
	if form.Get("flow_data[after_completion][redirect][return_url]") != "https://app.example.com/done" ||
		form.Get("return_url") != "https://app.example.com/billing" {
		t.Errorf("the page leads to %v", form)
	}
	subscribed(me, "standard", "active")
	s.stripe.Confirm(url)
	s.deliver()
	subscribed(me, "enhanced", "active")
	s.stripe.ForbidSwitch("price_standard")
	me.Call("POST", checkoutPath, purchase("standard")).Refused(409)

	s.stripe.FailPayment(subscription)
	s.deliver()
	subscribed(me, "enhanced", "past_due")
	if _, kind = checkout(me, purchase("enterprise")); kind != "plan_change" {
		t.Errorf("a change while a payment is due is a %s", kind)
	}
	s.stripe.Change(subscription, func(sub *paymenttest.Subscription) { sub.Status = "active" })
	s.deliver()
	subscribed(me, "enhanced", "active")

	answer := me.Call("POST", "/api/billing/checkout", purchase("free")).Want(200)
	if answer.Header.Get("Deprecation") == "" {
		t.Error("the old path is not deprecated")
	}
	nodetest.Members(t, "the old answer", answer.Object(), "url", "type")
	s.stripe.Confirm(answer.Object()["url"].(string))
	s.deliver()
	subscribed(me, "enhanced", "active")
	s.stripe.End(subscription)
	s.deliver()
	subscribed(me, "free", "canceled")
	if _, kind = checkout(me, purchase("standard")); kind != "subscription" {
		t.Errorf("a checkout after the end is a %s", kind)
	}
}

// A person who pays again before Stripe has reported the first payment is led to the existing subscription.
func TestACheckoutAsksStripeForASubscription(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me := s.SignUp(nodetest.Address())
	url, _ := checkout(me, purchase("standard"))
	s.stripe.Pay(url) // but no event arrives
	me.Call("POST", checkoutPath, purchase("standard")).Refused(409)
	if _, kind := checkout(me, purchase("enhanced")); kind != "plan_change" {
		t.Errorf("it is a %s", kind)
	}
}

func TestTheOldCheckout(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me := s.SignUp(nodetest.Address())
	me.Call("POST", "/api/billing/checkout", purchase("enhanced")).Refused(422, "planId")
	me.Call("POST", "/api/billing/checkout", purchase("premium")).Refused(422, "planId") // which has no price here
	me.Call("POST", "/api/billing/checkout", purchase("free")).
		Want(200).
		Shows(map[string]any{"url": "https://app.example.com/done"})
	if url := me.Call("POST", "/api/billing/checkout", purchase("standard")).Want(200).Object()["url"].(string); !strings.Contains(
		url, "/c/pay/",
	) {
		t.Errorf("the page is %s", url)
	}
	me.Call("POST", "/api/billing/checkout", purchase("free")).
		Want(200).
		Shows(map[string]any{"url": "https://app.example.com/done"})
}

func TestWithoutStripeNothingIsSold(t *testing.T) {
	t.Parallel()
	me := nodetest.Shared(t).SignUp(nodetest.Address())
	own := me.Service.URL + "/done"
	for _, path := range []string{checkoutPath, "/api/billing/checkout"} {
		me.Call("POST", path, purchase("standard", "successUrl", own, "cancelUrl", own)).Refused(503)
	}
	me.Call("POST", portalPath, map[string]any{"returnUrl": own}).Refused(503)
	me.Service.Anonymous().Call("POST", webhookPath, `{}`, "Stripe-Signature", "t=1,v1=00").Refused(503)
	me.Call("POST", checkoutPath, `{}`).Refused(422, "type", "successUrl", "cancelUrl")
}

// If Stripe fails in any way, the call returns 503 within ten seconds, nothing is half done, and the same request
// succeeds later. Other calls are not affected.
func TestStripeBreaks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, how := range []paymenttest.Failure{paymenttest.Down, paymenttest.Garbage, paymenttest.Empty, paymenttest.Strange, paymenttest.Busy, paymenttest.Failing, paymenttest.Hanging} {
		me, key := s.SignUp(nodetest.Address()), uuid.NewString()
		s.stripe.Break(how)
		began := time.Now()
		refusal := make(chan *nodetest.Answer, 1)
		go func() { refusal <- me.Call("POST", checkoutPath, purchase("standard"), "Idempotency-Key", key) }()
		for range 20 {
			me.Call("GET", "/api/v1/tenants/"+me.Tenant, nil).
				Want(200).
				Shows(map[string]any{"subscription": map[string]any{"plan": "free", "status": "active"}})
		}
		if a := (<-refusal).Refused(503); a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", how)
		}
		if took := time.Since(began); took > time.Minute { // on a busy machine; the service's timeout is nine
			t.Errorf("%s: it took %v", how, took)
		}
		s.stripe.Break(paymenttest.Working)
		me.Call("POST", checkoutPath, purchase("standard"), "Idempotency-Key", key).Want(200)
		s.stripe.Break(how)
		if how != paymenttest.Hanging { // one attempt is enough
			me.Call("POST", portalPath, map[string]any{"returnUrl": "https://app.example.com"}).Refused(503)
		}
		s.stripe.Break(paymenttest.Working)
	}
}

// After a slow Stripe call, the connection works normally for the next call.
func TestAConnectionOutlivesASlowCall(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me := s.SignUp(nodetest.Address())
	s.stripe.Break(paymenttest.Hanging)
	var connections atomic.Int32
	one := &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connections.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}},
	}
	defer one.CloseIdleConnections()
	call := func(method, path, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			"Authorization": {"Bearer " + me.Token},
			"X-Tenant-Id":   {me.Tenant},
			"Content-Type":  {"application/json"},
		}
		answer, err := one.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode
	}
	body, err := json.Marshal(purchase("standard"))
	if err != nil {
		t.Fatal(err)
	}
	if got := call("POST", checkoutPath, string(body)); got != 503 {
		t.Errorf("the checkout is answered %d", got)
	}
	if got := call("GET", "/api/v1/flags", ""); got != 200 || connections.Load() != 1 {
		t.Errorf("the next call is answered %d, over %d connections", got, connections.Load())
	}
}

// All tenants share the service's limit at Stripe. A person with many free tenants cannot use it up.
func TestCheckoutsOfAnHourAreBounded(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	me, other := s.SignUp("me@example.com"), s.SignUp("other@example.com")
	second := me.NewTenant("second")
	for i := range 20 {
		checkout([]*nodetest.Client{me, second}[i%2], purchase("standard"))
	}
	if wait := me.Call("POST", checkoutPath, purchase("standard")).Refused(429).Header.Get("Retry-After"); wait == "" {
		t.Error("it is not said when to try again")
	}
	second.Call("POST", portalPath, map[string]string{"returnUrl": "https://app.example.com"}).Refused(429)
	me.Call("POST", checkoutPath, purchase("unknown")).Refused(422, "planId")
	checkout(other, purchase("standard"))
}
