package http

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands"
	"flagledger/events"
)

type couponBody struct {
	Coupon string `json:"coupon" maxLength:"255" doc:"The id of a coupon at Stripe" example:"LAUNCH25"`
}

// CheckoutFields is what every checkout takes.
type CheckoutFields struct {
	Type              string       `json:"type" enum:"subscription,payment" example:"subscription"`
	SuccessURL        string       `json:"successUrl" maxLength:"2000" doc:"Where to go once it is paid: a page over https of the service or of an application that may call it from a browser" example:"https://app.example.com/billing/done"`
	CancelURL         string       `json:"cancelUrl" maxLength:"2000" doc:"Where to go instead" example:"https://app.example.com/billing"`
	ProductID         string       `json:"productId,omitempty" maxLength:"255" doc:"A product at Stripe; for a payment alone, where it is required" example:"prod_Q7jKd2n5mE1c"`
	Amount            *int64       `json:"amount,omitempty" minimum:"1" maximum:"99999999" doc:"In the smallest unit of the service's currency; for a payment alone, where it is required" example:"4900"`
	CustomerID        string       `json:"customerId,omitempty" maxLength:"255" doc:"The tenant's customer at Stripe; another tenant's is refused. Without it the tenant's own is used, or made" example:"cus_Q7jKd2n5mE1c"`
	PromoCode         string       `json:"promoCode,omitempty" maxLength:"100" doc:"A promotion code as customers type it; not beside discounts" example:"SPRING"`
	Discounts         []couponBody `json:"discounts,omitempty" maxItems:"1"`
	ReferralID        string       `json:"referralId,omitempty" maxLength:"200" doc:"The partner's value, which is noted at Stripe with a new subscription or a payment; a change of plan does not note it" example:"partner-7"`
	AffiliateReferral string       `json:"affiliate_referral,omitempty" maxLength:"200" doc:"The old name of referralId; if both are sent they must be the same" example:"partner-7"`
}

type checkoutBody struct {
	CheckoutFields
	PlanID planID `json:"planId,omitempty" example:"standard"`
}

type legacyCheckoutBody struct {
	CheckoutFields
	PlanID legacyPlanID `json:"planId,omitempty" example:"standard"`
}

// planID is a plan that a checkout may ask for. The document lists those that there are.
type planID events.Plan

// Schema implements huma.SchemaProvider.
func (planID) Schema(huma.Registry) *huma.Schema {
	return planSchema(planIDText, func(terms events.PlanTerms) bool { return terms.Checkout })
}

// legacyPlanID is the same in the old interface.
type legacyPlanID events.Plan

// Schema implements huma.SchemaProvider.
func (legacyPlanID) Schema(huma.Registry) *huma.Schema {
	return planSchema(planIDText, func(terms events.PlanTerms) bool { return terms.LegacyCheckout })
}

const planIDText = "For a subscription, where it is required"

// checkout is what a body asks for.
func (b CheckoutFields) checkout(ctx context.Context, plan events.Plan) commands.Checkout {
	c := commands.Checkout{
		TenantID: principalOf(ctx).tenant.ID(), Type: b.Type, SuccessURL: b.SuccessURL, CancelURL: b.CancelURL, Plan: plan,
		ProductID: b.ProductID, Amount: b.Amount, CustomerID: b.CustomerID, PromoCode: b.PromoCode, ReferralID: b.ReferralID,
		AffiliateReferral: b.AffiliateReferral, Key: newID(ctx),
	}
	for _, d := range b.Discounts {
		c.Coupons = append(c.Coupons, d.Coupon)
	}
	return c
}

type checkoutAnswer struct {
	CheckoutURL string `json:"checkoutUrl" format:"uri" doc:"The page of Stripe to open" example:"https://checkout.stripe.com/c/pay/cs_test_a1b2c3"`
	Type        string `json:"type" enum:"subscription,payment,plan_change" doc:"plan_change where the tenant has a subscription, and the page asks to confirm its change" example:"subscription"`
}

type checkoutOutput struct{ Body checkoutAnswer }

type legacyCheckoutAnswer struct {
	URL  string `json:"url" format:"uri" doc:"The page to open" example:"https://checkout.stripe.com/c/pay/cs_test_a1b2c3"`
	Type string `json:"type" enum:"subscription,payment,plan_change" example:"subscription"`
}

type legacyCheckoutOutput struct{ Body legacyCheckoutAnswer }

type portalBody struct {
	ReturnURL string `json:"returnUrl" maxLength:"2000" doc:"Where to go from there: a page over https of the service or of an application that may call it from a browser" example:"https://app.example.com/billing"`
}

type portalOutput struct {
	Body struct {
		PortalURL string `json:"portalUrl" format:"uri" doc:"The page of Stripe to open" example:"https://billing.stripe.com/p/session/test_YWNjdA"`
	}
}

const (
	checkoutRoute       = "/api/v1/billing/checkout"
	legacyCheckoutRoute = "/api/billing/checkout"
)

// checkoutExample leaves out what goes with a payment alone, and discounts, which do not go with a promotion code.
var checkoutExample = map[string]string{
	"type":       "subscription",
	"planId":     "standard",
	"successUrl": "https://app.example.com/billing/done",
	"cancelUrl":  "https://app.example.com/billing",
	"promoCode":  "SPRING",
	"referralId": "partner-7",
}

func (a *API) addCheckout() {
	checkout := operation("POST", checkoutRoute, "create-checkout", "Billing", "Begin to pay for a plan or a product")
	checkout.Description = "Answers a page of Stripe. A tenant that has a subscription gets one that asks to confirm " +
		"the change to the other plan. What is paid for is the tenant's as soon as Stripe tells the service of it, " +
		"usually within seconds. " +
		"A plan that the tenant has already is 409; so is a change that the settings of Stripe's portal do not allow, and " +
		"a tenant whose customer Stripe does not know. Beyond 20 checkouts and portals in an hour it is 429. Without " +
		"Stripe it answers 503."
	checkout.Errors = []int{http.StatusConflict}
	register(
		a,
		access{who: admin, requireTenant: true, pays: true},
		withExamples(checkout, checkoutExample, nil),
		func(ctx context.Context, in *struct {
			TenantInput
			ChangeInput
			Body checkoutBody
		}) (*checkoutOutput, error) {
			url, kind, err := a.checkout(ctx, in.Body.checkout(ctx, events.Plan(in.Body.PlanID)))
			return &checkoutOutput{checkoutAnswer{url, kind}}, err
		},
	)
	a.addLegacyCheckout()
	portal := operation("POST", "/api/v1/billing/portal", "create-portal", "Billing",
		"Open the page on which a tenant manages what it pays for")
	portal.Description = "Answers a page of Stripe with the tenant's subscription, means of payment and invoices. A " +
		"tenant that has never checked out is 409. Without Stripe it answers 503."
	portal.Errors = []int{http.StatusConflict}
	register(a, access{who: admin, pays: true}, portal, func(ctx context.Context, in *struct {
		TenantInput
		ChangeInput
		Body portalBody
	}) (out *portalOutput, err error) {
		key := newID(ctx)
		if err := withBodyErrors(ctx, a.Billing.CheckPortal(in.Body.ReturnURL)); err != nil {
			return nil, err
		}
		out = &portalOutput{}
		err = a.limitPayments(ctx, func() (err error) {
			out.Body.PortalURL, err = a.Billing.Portal(ctx, principalOf(ctx).tenant.ID(), in.Body.ReturnURL, key)
			return err
		})
		return out, err
	})
}

func (a *API) checkout(ctx context.Context, c commands.Checkout) (url, kind string, err error) {
	if err := withBodyErrors(ctx, a.Billing.CheckCheckout(c)); err != nil {
		return "", "", err
	}
	err = a.limitPayments(ctx, func() (err error) {
		url, kind, err = a.Billing.Checkout(ctx, by(ctx), c)
		return err
	})
	return url, kind, err
}

// limitPayments opens a page of the payment provider, unless too many were opened in this hour: the provider bounds the
// calls of the service, which all tenants share, and answers which promotion codes there are.
func (a *API) limitPayments(ctx context.Context, open func() error) error {
	if !a.Billing.Configured() {
		return open()
	}
	p := principalOf(ctx)
	slot, err := a.enterQueue(ctx, a.queues.payments, p)
	if err != nil {
		return err
	}
	defer slot.Leave()
	if left := a.limiter.CountPaymentPage(a.workQuota(ctx, p)); left.Exceeded {
		return tooManyRequests(left, "20 checkouts and portals were asked for in this hour, as many as an hour may have")
	}
	return open()
}

// addLegacyCheckout adds the old checkout, which knows other plans and answers url. Asked for the plan that costs
// nothing, it leads to the end of the subscription.
func (a *API) addLegacyCheckout() {
	op := legacyOperation("POST", legacyCheckoutRoute, "legacy-create-checkout", "Begin to pay for a plan or a product")
	op.Errors = []int{http.StatusConflict}
	register(
		a,
		access{who: admin, requireTenant: true, pays: true},
		withExamples(op, checkoutExample, nil),
		func(ctx context.Context, in *struct {
			TenantInput
			ChangeInput
			Body legacyCheckoutBody
		}) (*legacyCheckoutOutput, error) {
			c := in.Body.checkout(ctx, events.Plan(in.Body.PlanID))
			c.Legacy = true
			url, kind, err := a.checkout(ctx, c)
			return &legacyCheckoutOutput{legacyCheckoutAnswer{url, kind}}, err
		},
	)
}
