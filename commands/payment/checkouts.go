package payment

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/stripe/stripe-go/v76"
	portal "github.com/stripe/stripe-go/v76/billingportal/session"
	checkout "github.com/stripe/stripe-go/v76/checkout/session"

	"flagledger/commands"
	"flagledger/commands/billing"
)

// Checkout implements billing.Payments.
func (s *Stripe) Checkout(ctx context.Context, key string, c billing.CheckoutPage) (string, error) {
	metadata := map[string]string{tenantKey: c.TenantID}
	p := &stripe.CheckoutSessionParams{
		Params:     params(ctx, key),
		Customer:   stripe.String(c.CustomerID),
		SuccessURL: stripe.String(c.SuccessURL),
		CancelURL:  stripe.String(c.CancelURL),
		Metadata:   metadata,
	}
	if c.Referral != "" {
		metadata["referral"] = c.Referral
		p.ClientReferenceID = stripe.String(c.Referral)
	}
	item := &stripe.CheckoutSessionLineItemParams{Quantity: stripe.Int64(1)}
	p.LineItems = []*stripe.CheckoutSessionLineItemParams{item}
	if c.PriceID != "" {
		p.Mode = stripe.String(string(stripe.CheckoutSessionModeSubscription))
		p.SubscriptionData = &stripe.CheckoutSessionSubscriptionDataParams{Metadata: metadata}
		item.Price = stripe.String(c.PriceID)
	} else {
		p.Mode = stripe.String(string(stripe.CheckoutSessionModePayment))
		p.PaymentIntentData = &stripe.CheckoutSessionPaymentIntentDataParams{Metadata: metadata}
		item.PriceData = &stripe.CheckoutSessionLineItemPriceDataParams{
			Currency:   stripe.String(s.settings.Currency),
			Product:    stripe.String(c.Product.ID),
			UnitAmount: stripe.Int64(c.Product.Amount),
		}
	}
	switch {
	case c.Discount.Coupon != "":
		p.Discounts = []*stripe.CheckoutSessionDiscountParams{{Coupon: stripe.String(c.Discount.Coupon)}}
	case c.Discount.Promotion != "":
		p.Discounts = []*stripe.CheckoutSessionDiscountParams{{PromotionCode: stripe.String(c.Discount.Promotion)}}
	}
	made, err := checkout.Client{B: s.backend, Key: s.settings.SecretKey}.New(p)
	if err != nil {
		return "", refusedPage(err)
	}
	page, err := pageURL(made.URL)
	if err == nil && c.PriceID != "" {
		// Earlier pages are closed only now: for a retry, Stripe returns its first page. Later pages stay, so that two
		// concurrent requests leave one page.
		err = s.closeCheckouts(ctx, c.CustomerID, func(other *stripe.CheckoutSession) bool {
			return other.Mode == stripe.CheckoutSessionModeSubscription &&
				cmp.Or(cmp.Compare(other.Created, made.Created), cmp.Compare(other.ID, made.ID)) < 0
		})
	}
	return page, err
}

// CloseCheckouts implements billing.Payments. Stripe itself closes a page after a day.
func (s *Stripe) CloseCheckouts(ctx context.Context, customerID string, plansOnly bool) error {
	return s.closeCheckouts(ctx, customerID, func(page *stripe.CheckoutSession) bool {
		return !plansOnly || page.Mode == stripe.CheckoutSessionModeSubscription
	})
}

func (s *Stripe) closeCheckouts(
	ctx context.Context, customerID string, closes func(*stripe.CheckoutSession) bool,
) error {
	sessions := checkout.Client{B: s.backend, Key: s.settings.SecretKey}
	list := sessions.List(&stripe.CheckoutSessionListParams{
		ListParams: stripe.ListParams{Context: ctx, Limit: stripe.Int64(maxListed), Single: true},
		Customer:   stripe.String(customerID), Status: stripe.String(string(stripe.CheckoutSessionStatusOpen)),
	})
	var open []string
	for list.Next() {
		session := list.CheckoutSession()
		if session == nil || session.ID == "" {
			return unavailable(errUnreadable)
		}
		if closes(session) {
			open = append(open, session.ID)
		}
	}
	if err := list.Err(); err != nil {
		if unknownCustomer(err) {
			return nil
		}
		return unavailable(err)
	}
	if list.CheckoutSessionList().URL == "" {
		return unavailable(errUnreadable)
	}
	for _, id := range open {
		_, err := sessions.Expire(id, &stripe.CheckoutSessionExpireParams{Params: params(ctx, "")})
		// It was paid or has expired.
		if refusal, ok := errors.AsType[*stripe.Error](err); ok && refusal.HTTPStatusCode == http.StatusBadRequest {
			continue
		}
		if err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// Portal implements billing.Payments.
func (s *Stripe) Portal(ctx context.Context, key string, page billing.PortalPage) (string, error) {
	p := &stripe.BillingPortalSessionParams{
		Params:    params(ctx, key),
		Customer:  stripe.String(page.CustomerID),
		ReturnURL: stripe.String(page.ReturnURL),
	}
	switch {
	case page.Change != nil:
		p.FlowData = planChange(page.Change)
	case page.Cancel != "":
		p.FlowData = &stripe.BillingPortalSessionFlowDataParams{
			Type: stripe.String(string(stripe.BillingPortalSessionFlowTypeSubscriptionCancel)),
			SubscriptionCancel: &stripe.BillingPortalSessionFlowDataSubscriptionCancelParams{
				Subscription: stripe.String(page.Cancel),
			},
		}
	}
	made, err := portal.Client{B: s.backend, Key: s.settings.SecretKey}.New(p)
	if err != nil {
		return "", refusedPage(err)
	}
	return pageURL(made.URL)
}

// planChange returns the flow that asks a customer to confirm another price.
func planChange(c *billing.PlanChange) *stripe.BillingPortalSessionFlowDataParams {
	confirm := &stripe.BillingPortalSessionFlowDataSubscriptionUpdateConfirmParams{
		Subscription: stripe.String(c.SubscriptionID),
		Items: []*stripe.BillingPortalSessionFlowDataSubscriptionUpdateConfirmItemParams{
			{ID: stripe.String(c.ItemID), Price: stripe.String(c.PriceID), Quantity: stripe.Int64(1)},
		},
	}
	discount := &stripe.BillingPortalSessionFlowDataSubscriptionUpdateConfirmDiscountParams{}
	switch {
	case c.Discount.Coupon != "":
		discount.Coupon = stripe.String(c.Discount.Coupon)
		confirm.Discounts = append(confirm.Discounts, discount)
	case c.Discount.Promotion != "":
		discount.PromotionCode = stripe.String(c.Discount.Promotion)
		confirm.Discounts = append(confirm.Discounts, discount)
	}
	return &stripe.BillingPortalSessionFlowDataParams{
		Type:                      stripe.String(string(stripe.BillingPortalSessionFlowTypeSubscriptionUpdateConfirm)),
		SubscriptionUpdateConfirm: confirm,
		AfterCompletion: &stripe.BillingPortalSessionFlowDataAfterCompletionParams{
			Type:     stripe.String(string(stripe.BillingPortalSessionFlowAfterCompletionTypeRedirect)),
			Redirect: &stripe.BillingPortalSessionFlowDataAfterCompletionRedirectParams{ReturnURL: stripe.String(c.DoneURL)},
		},
	}
}

// pageURL checks the address of a page.
func pageURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", unavailable(errUnreadable)
	}
	return text, nil
}

// fieldsByParam maps the ends of Stripe's parameters to fields of a request.
var fieldsByParam = []struct{ end, field string }{
	{"[coupon]", "discounts[0].coupon"},
	{"[promotion_code]", "promoCode"},
	{"[product]", "productId"},
	{"[unit_amount]", "amount"},
	{"success_url", "successUrl"},
	{"cancel_url", "cancelUrl"},
}

// refusedPage turns Stripe's refusal of a page into our error.
func refusedPage(err error) error {
	refusal, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		return unavailable(err)
	}
	switch {
	case refusal.Type == stripe.ErrorTypeIdempotency, refusal.HTTPStatusCode == http.StatusConflict:
		return &commands.Error{
			Kind:   commands.Conflict,
			Detail: "a request with this Idempotency-Key is known to the payment provider, and differs or is under way",
			Err:    nameless(err),
		}
	case refusal.Type != stripe.ErrorTypeInvalidRequest || refusal.HTTPStatusCode != http.StatusBadRequest &&
		refusal.HTTPStatusCode != http.StatusNotFound:
		return unavailable(err)
	case refusal.Code == stripe.ErrorCodeAmountTooSmall || refusal.Code == stripe.ErrorCodeAmountTooLarge:
		return invalid("amount", "is too small or too large for the payment provider", err)
	}
	for _, known := range fieldsByParam {
		if strings.HasSuffix(refusal.Param, known.end) {
			return invalid(known.field, "is refused by the payment provider", err)
		}
	}
	return &commands.Error{
		Kind: commands.Conflict,
		Detail: "the payment provider does not make such a page; its settings, or the state of the subscription, do not " +
			"allow it",
		Err: nameless(err),
	}
}

func invalid(field, text string, err error) error {
	refusal := commands.InvalidField(field, text)
	refusal.Err = nameless(err)
	return refusal
}
