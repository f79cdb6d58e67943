package billing

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/commands/billing"
	"flagledger/events"
	"flagledger/http/rest"
)

type couponBody struct {
	Coupon string `json:"coupon" maxLength:"255" doc:"The id of a coupon at Stripe" example:"LAUNCH25"`
}

// CheckoutFields holds the fields of every checkout.
type CheckoutFields struct {
	Type              string       `json:"type" enum:"subscription,payment" example:"subscription"`
	SuccessURL        string       `json:"successUrl" maxLength:"2000" doc:"The page to open after payment: an https page of the service or of an allowed origin" example:"https://app.example.com/billing/done"`
	CancelURL         string       `json:"cancelUrl" maxLength:"2000" doc:"The page to open if the customer cancels" example:"https://app.example.com/billing"`
	ProductID         string       `json:"productId,omitempty" maxLength:"255" doc:"A product at Stripe; required for a payment, and not allowed for a subscription" example:"prod_Q7jKd2n5mE1c"`
	Amount            *int64       `json:"amount,omitempty" minimum:"1" maximum:"99999999" doc:"In the smallest unit of the service's currency; required for a payment, and not allowed for a subscription" example:"4900"`
	CustomerID        string       `json:"customerId,omitempty" maxLength:"255" doc:"The tenant's customer at Stripe; another tenant's is refused. The default is the tenant's own, which is created if needed" example:"cus_Q7jKd2n5mE1c"`
	PromoCode         string       `json:"promoCode,omitempty" maxLength:"100" doc:"A promotion code as customers type it; not together with discounts" example:"SPRING"`
	Discounts         []couponBody `json:"discounts,omitempty" maxItems:"1"`
	ReferralID        string       `json:"referralId,omitempty" maxLength:"200" doc:"The partner's value, stored at Stripe with a new subscription or a payment, but not with a change of plan" example:"partner-7"`
	AffiliateReferral string       `json:"affiliate_referral,omitempty" maxLength:"200" doc:"The old name of referralId; if both are sent they must be equal" example:"partner-7"`
}

type checkoutBody struct {
	CheckoutFields
	PlanID planID `json:"planId,omitempty" example:"standard"`
}

type legacyCheckoutBody struct {
	CheckoutFields
	PlanID legacyPlanID `json:"planId,omitempty" example:"standard"`
}

// planID is a plan that a checkout may ask for. Its schema lists them.
type planID events.Plan

// Schema implements huma.SchemaProvider.
func (planID) Schema(huma.Registry) *huma.Schema {
	return rest.PlanSchema(planIDText, func(terms events.PlanTerms) bool { return terms.Checkout })
}

// legacyPlanID is a plan that a checkout of the legacy API may ask for.
type legacyPlanID events.Plan

// Schema implements huma.SchemaProvider.
func (legacyPlanID) Schema(huma.Registry) *huma.Schema {
	return rest.PlanSchema(planIDText, func(terms events.PlanTerms) bool { return terms.LegacyCheckout })
}

const planIDText = "Required for a subscription"

// checkout returns the checkout that a body asks for.
func (b CheckoutFields) checkout(ctx context.Context, plan events.Plan) billing.Checkout {
	c := billing.Checkout{
		TenantID: rest.PrincipalOf(ctx).Tenant.ID(), Type: b.Type, SuccessURL: b.SuccessURL, CancelURL: b.CancelURL,
		Plan:      plan,
		ProductID: b.ProductID, Amount: b.Amount, CustomerID: b.CustomerID, PromoCode: b.PromoCode, ReferralID: b.ReferralID,
		AffiliateReferral: b.AffiliateReferral, Key: rest.NewID(ctx),
	}
	for _, d := range b.Discounts {
		c.Coupons = append(c.Coupons, d.Coupon)
	}
	return c
}

type checkoutAnswer struct {
	CheckoutURL string `json:"checkoutUrl" format:"uri" doc:"The page of Stripe to open" example:"https://checkout.stripe.com/c/pay/cs_test_a1b2c3"`
	Type        string `json:"type" enum:"subscription,payment,plan_change" doc:"plan_change if the tenant has a subscription; the page then asks to confirm the change" example:"subscription"`
}

type checkoutOutput struct{ Body checkoutAnswer }

type legacyCheckoutAnswer struct {
	URL  string `json:"url" format:"uri" doc:"The page to open" example:"https://checkout.stripe.com/c/pay/cs_test_a1b2c3"`
	Type string `json:"type" enum:"subscription,payment,plan_change" example:"subscription"`
}

type legacyCheckoutOutput struct{ Body legacyCheckoutAnswer }

type portalBody struct {
	ReturnURL string `json:"returnUrl" maxLength:"2000" doc:"The page to return to: an https page of the service or of an allowed origin" example:"https://app.example.com/billing"`
}

type portalOutput struct {
	Body struct {
		PortalURL string `json:"portalUrl" format:"uri" doc:"The page of Stripe to open" example:"https://billing.stripe.com/p/session/test_YWNjdA"`
	}
}

// checkoutExample omits fields that only a payment allows, and discounts, which a promotion code excludes.
var checkoutExample = map[string]string{
	"type":       "subscription",
	"planId":     "standard",
	"successUrl": "https://app.example.com/billing/done",
	"cancelUrl":  "https://app.example.com/billing",
	"promoCode":  "SPRING",
	"referralId": "partner-7",
}

func (a *API) addCheckout() {
	checkout := rest.Operation("POST", rest.CheckoutRoute, "create-checkout", "Billing",
		"Begin to pay for a plan or a product")
	checkout.Description = "Returns the URL of a Stripe page. If the tenant has a subscription, the page asks to " +
		"confirm the change of plan. The tenant gets what it paid for when Stripe notifies the service, usually within " +
		"seconds. The answer is 409 if the tenant already has the plan, if the settings of Stripe's portal do not allow " +
		"the change, or if Stripe does not know the tenant's customer. It is 429 beyond 20 checkouts and portals in an " +
		"hour, and 503 without Stripe."
	checkout.Errors = []int{http.StatusConflict}
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Admin, RequireTenant: true, UpgradesPlan: true},
		rest.WithExamples(checkout, checkoutExample, nil),
		func(ctx context.Context, in *struct {
			rest.TenantInput
			rest.ChangeInput
			Body checkoutBody
		}) (*checkoutOutput, error) {
			url, kind, err := a.checkout(ctx, in.Body.checkout(ctx, events.Plan(in.Body.PlanID)))
			return &checkoutOutput{checkoutAnswer{url, kind}}, err
		},
	)
	a.addLegacyCheckout()
	portal := rest.Operation("POST", "/api/v1/billing/portal", "create-portal", "Billing",
		"Open the page that manages the tenant's subscription")
	portal.Description = "Returns the URL of a Stripe page with the tenant's subscription, payment methods and " +
		"invoices. The answer is 409 if the tenant has never checked out, and 503 without Stripe."
	portal.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin, UpgradesPlan: true}, portal, func(ctx context.Context, in *struct {
		rest.TenantInput
		rest.ChangeInput
		Body portalBody
	}) (out *portalOutput, err error) {
		key := rest.NewID(ctx)
		if err := rest.AddBodyErrors(ctx, a.Billing.CheckPortal(in.Body.ReturnURL)); err != nil {
			return nil, err
		}
		out = &portalOutput{}
		err = a.limitPayments(ctx, func() (err error) {
			out.Body.PortalURL, err = a.Billing.Portal(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.Body.ReturnURL, key)
			return err
		})
		return out, err
	})
}

func (a *API) checkout(ctx context.Context, c billing.Checkout) (url, kind string, err error) {
	if err := rest.AddBodyErrors(ctx, a.Billing.CheckCheckout(c)); err != nil {
		return "", "", err
	}
	err = a.limitPayments(ctx, func() (err error) {
		url, kind, err = a.Billing.Checkout(ctx, rest.CallMetadata(ctx), c)
		return err
	})
	return url, kind, err
}

// limitPayments opens a page of the payment provider within an hourly limit. All tenants share the provider's rate
// limit, and its answers reveal which promotion codes exist.
func (a *API) limitPayments(ctx context.Context, open func() error) error {
	if !a.Billing.Configured() {
		return open()
	}
	p := rest.PrincipalOf(ctx)
	leave, err := a.EnterMemory(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if left := a.Limiter.CountPaymentPage(a.WorkQuota(ctx, p)); left.Exceeded {
		return rest.TooManyRequests(left, "the limit of 20 checkouts and portals an hour is reached")
	}
	return open()
}

// addLegacyCheckout adds the legacy checkout, which has other plans and responds with url. The plan free ends the
// subscription.
func (a *API) addLegacyCheckout() {
	op := rest.LegacyOperation("POST", rest.LegacyCheckoutRoute, "legacy-create-checkout",
		"Begin to pay for a plan or a product")
	op.Errors = []int{http.StatusConflict}
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Admin, RequireTenant: true, UpgradesPlan: true},
		rest.WithExamples(op, checkoutExample, nil),
		func(ctx context.Context, in *struct {
			rest.TenantInput
			rest.ChangeInput
			Body legacyCheckoutBody
		}) (*legacyCheckoutOutput, error) {
			c := in.Body.checkout(ctx, events.Plan(in.Body.PlanID))
			c.Legacy = true
			url, kind, err := a.checkout(ctx, c)
			return &legacyCheckoutOutput{legacyCheckoutAnswer{url, kind}}, err
		},
	)
}
