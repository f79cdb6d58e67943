package payment_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flagledger/commands"
	"flagledger/commands/billing"
	"flagledger/commands/payment"
	"flagledger/commands/payment/paymenttest"
	"flagledger/events"
)

var settings = payment.Settings{
	SecretKey:     paymenttest.SecretKey,
	WebhookSecret: paymenttest.WebhookSecret,
	Currency:      "eur",
}

func open(base string) *payment.Stripe {
	s := settings
	s.Base = base
	return payment.Open(s)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*payment.Settings)
		named  string // empty if they are valid
	}{
		{func(*payment.Settings) {}, ""},
		{func(s *payment.Settings) { s.SecretKey = "rk_live_51Nabc" }, ""},
		{func(s *payment.Settings) { s.WebhookSecret = "" }, ""},
		{func(s *payment.Settings) { s.Base = "https://api.stripe.com" }, ""},
		{func(s *payment.Settings) { s.Base = "http://127.0.0.1:12111" }, ""},
		{func(s *payment.Settings) { s.SecretKey = "pk_test_secret" }, "STRIPE_SECRET_KEY"},
		{func(s *payment.Settings) { s.SecretKey = "sk_test_a b" }, "STRIPE_SECRET_KEY"},
		{func(s *payment.Settings) { s.WebhookSecret = "secret" }, "STRIPE_WEBHOOK_SECRET"},
		{func(s *payment.Settings) { s.Currency = "euro" }, "STRIPE_CURRENCY"},
		{func(s *payment.Settings) { s.Base = "http://api.stripe.com" }, "STRIPE_API_BASE"},
		{func(s *payment.Settings) { s.Base = "http://localhost.evil.example" }, "STRIPE_API_BASE"},
		{func(s *payment.Settings) { s.Base = "https://user:secret@api.stripe.com" }, "STRIPE_API_BASE"},
	} {
		s := settings
		c.change(&s)
		err := s.Check()
		if c.named == "" && err != nil ||
			c.named != "" &&
				(err == nil || !strings.HasPrefix(err.Error(), c.named) || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%+v: %v, want an error that names %q", s, err, c.named)
		}
	}
}

// everyCall calls each method once.
func everyCall(ctx context.Context, s *payment.Stripe) map[string]error {
	failed := map[string]error{}
	_, failed["NewCustomer"] = s.NewCustomer(ctx, "customer", "tenant")
	failed["CloseCheckouts"] = s.CloseCheckouts(ctx, "cus_1", false)
	_, failed["Customer"] = s.Customer(ctx, "cus_1")
	_, failed["Subscriptions"] = s.Subscriptions(ctx, "cus_1")
	_, failed["Subscription"] = s.Subscription(ctx, "sub_1")
	_, failed["PromotionCode"] = s.PromotionCode(ctx, "SPRING")
	_, failed["Checkout"] = s.Checkout(
		ctx,
		"key",
		billing.CheckoutPage{
			TenantID:   "t",
			CustomerID: "cus_1",
			PriceID:    "price_1",
			SuccessURL: "https://a.example",
			CancelURL:  "https://a.example",
		},
	)
	_, failed["Portal"] = s.Portal(ctx, "key", billing.PortalPage{CustomerID: "cus_1", ReturnURL: "https://a.example"})
	return failed
}

// However Stripe fails, each call returns Unavailable, without any text from Stripe.
func TestABrokenStripeIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, how := range []paymenttest.Failure{
		paymenttest.Down, paymenttest.Garbage, paymenttest.Empty, paymenttest.Strange, paymenttest.Busy, paymenttest.Failing, paymenttest.Forbidden,
	} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			server := paymenttest.New(t, paymenttest.Clock())
			server.Break(how)
			for call, err := range everyCall(t.Context(), open(server.URL())) {
				if commands.KindOf(err) != commands.Unavailable {
					t.Errorf("%s: %v", call, err)
				} else if strings.Contains(err.Error(), "@") || strings.Contains(err.Error(), "SPRING") || strings.Contains(err.Error(), paymenttest.SecretKey) {
					t.Errorf("%s tells too much: %v", call, err)
				}
			}
			if err := open(server.URL()).CancelSubscription(t.Context(), "sub_1"); err == nil && how != paymenttest.Empty &&
				how != paymenttest.Strange {
				t.Error("a subscription is cancelled by a Stripe that is broken")
			}
		})
	}
}

// A call ends at its caller's timeout and is not retried.
func TestAHangingStripeIsGivenUp(t *testing.T) {
	t.Parallel()
	server := paymenttest.New(t, paymenttest.Clock())
	server.Break(paymenttest.Hanging)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := open(server.URL()).NewCustomer(ctx, "customer", "tenant"); commands.KindOf(err) != commands.Unavailable {
		t.Errorf("got %v", err)
	}
	if calls := server.Calls("POST", "/v1/customers"); len(calls) > 1 {
		t.Errorf("it was called %d times", len(calls))
	}
}

// Endless answers are cut off.
func TestAnEndlessAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(`{"object":"list","data":[` + strings.Repeat(`{"id":"`+strings.Repeat("x", 1000)+`"},`, 100))
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	for call, err := range everyCall(t.Context(), open(server.URL)) {
		if commands.KindOf(err) != commands.Unavailable {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// No call panics, whatever JSON the answer is.
func TestNoAnswerPanics(t *testing.T) {
	t.Parallel()
	var text string
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }),
	)
	t.Cleanup(server.Close)
	s := open(server.URL)
	values := []string{
		"null",
		"{}",
		"[]",
		"[null]",
		`""`,
		`"active"`,
		"1",
		`{"data":[null]}`,
		`{"data":[{}]}`,
		`{"id":"x","recurring":{}}`,
		`{"data":[{"id":"si","price":{"id":"p"}}]}`,
		"true",
	}
	members := []string{
		"id",
		"object",
		"data",
		"items",
		"customer",
		"metadata",
		"status",
		"url",
		"current_period_end",
		"has_more",
		"deleted",
		"error",
	}
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		for _, name := range members {
			if rapid.Bool().Draw(t, name+" is there") {
				parts = append(parts, `"`+name+`":`+rapid.SampledFrom(values).Draw(t, name))
			}
		}
		text = "{" + strings.Join(parts, ",") + "}"
		everyCall(context.Background(), s)
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	server := paymenttest.New(t, paymenttest.Clock())
	s := open(server.URL())
	server.AddPrice("price_1", "month")
	server.AddPrice("price_2", "year")
	customer, err := s.NewCustomer(t.Context(), "customer", "tenant")
	if err != nil {
		t.Fatal(err)
	}
	if repeated, err := s.NewCustomer(t.Context(), "customer", "tenant"); err != nil || repeated != customer {
		t.Errorf("the tenant is the customers %s and %s: %v", customer, repeated, err)
	}
	page := billing.CheckoutPage{
		TenantID:   "tenant",
		CustomerID: customer,
		PriceID:    "price_1",
		SuccessURL: "https://a.example",
		CancelURL:  "https://a.example",
	}
	product := page
	product.PriceID, product.Product = "", billing.Product{ID: "prod_1", Amount: 900}
	server.AddProduct("prod_1")
	for what, c := range map[string]struct {
		page  billing.CheckoutPage
		field string
	}{
		"coupon":    {with(page, func(p *billing.CheckoutPage) { p.Discount.Coupon = "none" }), "discounts[0].coupon"},
		"promotion": {with(page, func(p *billing.CheckoutPage) { p.Discount.Promotion = "none" }), "promoCode"},
		"product":   {with(product, func(p *billing.CheckoutPage) { p.Product.ID = "none" }), "productId"},
		"amount":    {with(product, func(p *billing.CheckoutPage) { p.Product.Amount = 1 }), "amount"},
	} {
		_, err := s.Checkout(t.Context(), "", c.page)
		if refusal, ok := errors.AsType[*commands.Error](err); !ok || refusal.Kind != commands.Invalid ||
			refusal.Fields[c.field] == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Checkout(t.Context(), "k", page); err != nil {
		t.Error(err)
	}
	if _, err := s.Checkout(t.Context(), "k", product); commands.KindOf(err) != commands.Conflict {
		t.Errorf("a key that is used again: %v", err)
	}
	if _, err := s.Customer(t.Context(), "cus_none"); commands.KindOf(err) != commands.NotFound {
		t.Errorf("got %v", err)
	}
	if _, err := s.Subscriptions(t.Context(), "cus_none"); commands.KindOf(err) != commands.NotFound {
		t.Errorf("got %v", err)
	}
	if _, err := s.PromotionCode(t.Context(), "none"); commands.KindOf(err) != commands.NotFound {
		t.Errorf("got %v", err)
	}
	id := server.Subscribe(customer, "price_2")
	list, err := s.Subscriptions(t.Context(), customer)
	if err != nil || len(list) != 1 || list[0].ID != id || list[0].Status != events.Active ||
		list[0].Items[0].BillingCycle != events.Yearly ||
		list[0].PeriodEnd.IsZero() {
		t.Errorf("got %+v, %v", list, err)
	}
	monthly, err := s.Subscription(t.Context(), server.Subscribe(customer, "price_1"))
	if err != nil || monthly.Items[0].BillingCycle != events.Monthly || monthly.TenantID != "" {
		t.Errorf("got %+v, %v", monthly, err)
	}
	change := &billing.PlanChange{
		SubscriptionID: id,
		ItemID:         list[0].Items[0].ID,
		PriceID:        "price_1",
		DoneURL:        "https://a.example",
	}
	server.ForbidSwitch("price_1")
	if _, err := s.Portal(
		t.Context(), "", billing.PortalPage{CustomerID: customer, ReturnURL: "https://a.example", Change: change},
	); commands.KindOf(err) != commands.Conflict {
		t.Errorf("a change that the portal does not allow: %v", err)
	}
	for range 2 {
		if err := s.CancelSubscription(t.Context(), id); err != nil || server.Status(id) != "canceled" {
			t.Errorf("it is %s: %v", server.Status(id), err)
		}
	}
}

func with[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

func TestEventsAreSigned(t *testing.T) {
	t.Parallel()
	s, now := open(""), time.Unix(1_790_000_000, 0)
	payload := []byte(
		`{"id":"evt_1","type":"customer.subscription.updated","data":{"object":{"id":"sub_1","customer":"cus_1","metadata":{"flagledger_tenant":"t"}}}}`,
	)
	want := billing.PaymentEvent{ID: "evt_1", CustomerID: "cus_1", TenantID: "t"}
	sign := func(d time.Duration) string { return paymenttest.Sign(payload, now.Add(d)) }
	for _, d := range []time.Duration{0, -5 * time.Minute, 5 * time.Minute} {
		if got, err := s.Event(payload, sign(d), now); err != nil || got != want {
			t.Errorf("signed %v from now: %+v, %v", d, got, err)
		}
	}
	good := sign(0)
	for what, signature := range map[string]string{
		"none":                  "",
		"too old":               sign(-5*time.Minute - time.Second),
		"too young":             sign(5*time.Minute + time.Second),
		"of another payload":    paymenttest.Sign([]byte(`{"id":"evt_2"}`), now),
		"with another time":     strings.Replace(good, "t=1790000000", "t=1790000001", 1),
		"with two times":        "t=1790000000," + good,
		"with a time in words":  strings.Replace(good, "t=1790000000", "t=now", 1),
		"of another scheme":     strings.Replace(good, "v1=", "v0=", 1),
		"that is cut off":       good[:len(good)-2],
		"without a value":       "t=1790000000,v1=",
		"with nothing but text": "secret",
	} {
		if _, err := s.Event(payload, signature, now); !errors.Is(err, billing.ErrSignature) {
			t.Errorf("a signature %s: %v", what, err)
		}
	}
	if _, err := s.Event(append(payload, ' '), good, now); !errors.Is(err, billing.ErrSignature) {
		t.Errorf("one byte more: %v", err)
	}
}

// Events about other things than subscriptions and their customers are ignored.
func TestEventsOfOtherKindsConcernNobody(t *testing.T) {
	t.Parallel()
	s, now := open(""), time.Now()
	for text, customer := range map[string]string{
		`{"id":"e","type":"invoice.payment_failed","data":{"object":{"customer":"cus_1"}}}`:                                   "cus_1",
		`{"id":"e","type":"checkout.session.completed","data":{"object":{"customer":"cus_1","client_reference_id":"cus_2"}}}`: "cus_1",
		`{"id":"e","type":"customer.deleted","data":{"object":{"id":"cus_1"}}}`:                                               "cus_1",
		`{"id":"e","type":"customer.updated","data":{"object":{"id":"cus_1"}}}`:                                               "",
		`{"id":"e","type":"charge.succeeded","data":{"object":{"customer":{"id":"cus_1"}}}}`:                                  "",
		`{"id":"e","type":"invoice.paid","account":"acct_1","data":{"object":{"customer":"cus_1"}}}`:                          "",
		`{"id":"e","type":"invoice.paid","data":{"object":{"customer":null}}}`:                                                "",
	} {
		got, err := s.Event([]byte(text), paymenttest.Sign([]byte(text), now), now)
		if err != nil || got.CustomerID != customer || got.TenantID != "" {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"id":"e","type":"invoice.paid","data":{"object":{"customer":"c"}}}`), "t=1,v1=00")
	f.Add([]byte(`{"id":"e","type":"invoice.paid","data":null}`), "")
	f.Fuzz(func(t *testing.T, payload []byte, signature string) {
		s, now := open(""), time.Unix(1, 0)
		if _, err := s.Event(payload, signature, now); err == nil {
			t.Errorf("%q is taken for the signature of %q", signature, payload)
		}
		_, _ = s.Event(payload, paymenttest.Sign(payload, now), now)
	})
}

// A page closes only earlier pages, so that one page stays open after concurrent or repeated requests.
func TestACheckoutClosesEarlierPages(t *testing.T) {
	t.Parallel()
	server := paymenttest.New(t, paymenttest.Clock())
	server.AddPrice("price_1", "month")
	s, customer := open(server.URL()), server.AddCustomer(nil)
	page := func(key string) string {
		t.Helper()
		url, err := s.Checkout(
			t.Context(),
			key,
			billing.CheckoutPage{
				TenantID:   "t",
				CustomerID: customer,
				PriceID:    "price_1",
				SuccessURL: "https://a.example",
				CancelURL:  "https://a.example",
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		return url
	}
	first := page("a")
	second := page("b")
	if repeated := page("a"); repeated != first || server.Payable(first) || !server.Payable(second) {
		t.Errorf("the first page: %v, the second: %v; made again it is the first: %v", server.Payable(first),
			server.Payable(second), repeated == first)
	}
}
