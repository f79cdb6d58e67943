package billing

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"flagledger/commands"
	"flagledger/events"
)

func TestCheckoutNamesAllThatIsWrong(t *testing.T) {
	b := &Billing{ReturnURLs: returnURLs(t, false)}
	subscription := Checkout{
		Type:       SubscriptionCheckout,
		Plan:       events.StandardPlan,
		SuccessURL: "https://app.example.com/done",
		CancelURL:  "https://app.example.com/billing",
	}
	payment := subscription
	payment.Type, payment.Plan, payment.ProductID, payment.Amount = PaymentCheckout, "", "prod_1", new(int64(4900))
	for name, c := range map[string]struct {
		of     Checkout
		change func(*Checkout)
		fields []string
	}{
		"a subscription":         {subscription, func(*Checkout) {}, nil},
		"a payment":              {payment, func(*Checkout) {}, nil},
		"nothing":                {Checkout{}, func(*Checkout) {}, []string{"type", "successUrl", "cancelUrl"}},
		"another type":           {subscription, func(c *Checkout) { c.Type = "gift" }, []string{"type"}},
		"no plan":                {subscription, func(c *Checkout) { c.Plan = "" }, []string{"planId"}},
		"an unknown plan":        {subscription, func(c *Checkout) { c.Plan = "gold" }, []string{"planId"}},
		"a plan of the old API":  {subscription, func(c *Checkout) { c.Plan = events.FreePlan }, []string{"planId"}},
		"a plan of the new API":  {subscription, func(c *Checkout) { c.Plan, c.Legacy = events.EnhancedPlan, true }, []string{"planId"}},
		"no product and amount":  {payment, func(c *Checkout) { c.ProductID, c.Amount = "", nil }, []string{"productId", "amount"}},
		"an amount of nothing":   {payment, func(c *Checkout) { c.Amount = new(int64(0)) }, []string{"amount"}},
		"a negative amount":      {payment, func(c *Checkout) { c.Amount = new(int64(-1)) }, []string{"amount"}},
		"the largest amount":     {payment, func(c *Checkout) { c.Amount = new(int64(99_999_999)) }, nil},
		"a larger amount":        {payment, func(c *Checkout) { c.Amount = new(int64(100_000_000)) }, []string{"amount"}},
		"a path as the product":  {payment, func(c *Checkout) { c.ProductID = "prod/../x" }, []string{"productId"}},
		"a query of a customer":  {subscription, func(c *Checkout) { c.CustomerID = "cus_1?x" }, []string{"customerId"}},
		"a code and a coupon":    {subscription, func(c *Checkout) { c.PromoCode, c.Coupons = "SPRING", []string{"c"} }, []string{"promoCode"}},
		"two coupons":            {subscription, func(c *Checkout) { c.Coupons = []string{"c", "d"} }, []string{"discounts"}},
		"an empty coupon":        {subscription, func(c *Checkout) { c.Coupons = []string{""} }, []string{"discounts[0].coupon"}},
		"two referrals":          {subscription, func(c *Checkout) { c.ReferralID, c.AffiliateReferral = "a", "b" }, []string{"affiliate_referral"}},
		"one referral, twice":    {subscription, func(c *Checkout) { c.ReferralID, c.AffiliateReferral = "a", "a" }, nil},
		"a long referral":        {subscription, func(c *Checkout) { c.ReferralID = strings.Repeat("x", 201) }, []string{"referralId"}},
		"pages of other origins": {subscription, func(c *Checkout) { c.SuccessURL, c.CancelURL = "//evil.example", "javascript:alert(1)" }, []string{"successUrl", "cancelUrl"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.change(&c.of)
			err := b.CheckCheckout(c.of)
			if c.fields == nil {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			refusal, _ := errors.AsType[*commands.Error](err)
			if commands.KindOf(err) != commands.Invalid || !slices.Equal(slices.Sorted(maps.Keys(refusal.Fields)), slices.Sorted(slices.Values(c.fields))) {
				t.Errorf("%v, want a refusal of %v", err, c.fields)
			}
		})
	}
}
