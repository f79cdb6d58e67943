// Package billing sells plans and products to tenants.
package billing

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// Billing sells plans and products to tenants through the payment provider, and applies what they have bought.
type Billing struct {
	Writer     *writer.Writer
	Payments   Payments // nil if not configured
	Prices     PlanPrices
	ReturnURLs ReturnURLs
	Events     interface {
		// Enqueue schedules a Follow for an event's tenant and customer, once for each event id. It is idempotent.
		Enqueue(ctx context.Context, e PaymentEvent) error
	}
	Now func() time.Time
	Log *slog.Logger
}

// Configured reports whether there is a payment provider.
func (b *Billing) Configured() bool { return b.Payments != nil }

// billingTimeout limits the calls of the payment provider and the fact together.
const billingTimeout = 9 * time.Second

// Types of a checkout. PlanChange is only returned.
const (
	SubscriptionCheckout = "subscription"
	PaymentCheckout      = "payment"
	PlanChangeCheckout   = "plan_change"
)

const (
	maxAmount    = 99_999_999 // the provider's limit
	maxReferral  = 200        // in characters, the provider's limit
	maxPromoCode = 100
	maxPaymentID = 255
)

var paymentIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// Checkout is a request for a page on which a tenant pays.
type Checkout struct {
	TenantID          string
	Type              string
	SuccessURL        string
	CancelURL         string
	Plan              events.Plan // of a subscription
	ProductID         string      // of a payment, as is the amount
	Amount            *int64
	CustomerID        string
	PromoCode         string
	Coupons           []string
	ReferralID        string
	AffiliateReferral string // the old name of ReferralID
	Legacy            bool   // from the legacy API, which sells other plans
	Key               string // the same for a retry
}

// CheckCheckout returns an error that names all wrong fields of a checkout, or nil.
func (b *Billing) CheckCheckout(c Checkout) error {
	wrong := commands.FieldErrors{}
	b.checkReturn(wrong, "successUrl", c.SuccessURL)
	b.checkReturn(wrong, "cancelUrl", c.CancelURL)
	switch c.Type {
	case SubscriptionCheckout:
		names := events.PlanNames(
			func(t events.PlanTerms) bool { return t.Checkout && !c.Legacy || t.LegacyCheckout && c.Legacy },
		)
		wrong.Check(c.Plan != "", "planId", "is required for a subscription")
		wrong.Check(slices.Contains(names, string(c.Plan)), "planId", "must be one of %s", strings.Join(names, ", "))
	case PaymentCheckout:
		wrong.Check(c.ProductID != "", "productId", "is required for a payment")
		checkPaymentID(wrong, "productId", c.ProductID)
		wrong.Check(c.Amount != nil, "amount", "is required for a payment")
		wrong.Check(c.Amount == nil || *c.Amount > 0 && *c.Amount <= maxAmount, "amount",
			"must be a whole number from 1 to %d", maxAmount)
	case "":
		wrong.Check(false, "type", "is required")
	default:
		wrong.Check(false, "type", "must be %s or %s", SubscriptionCheckout, PaymentCheckout)
	}
	checkPaymentID(wrong, "customerId", c.CustomerID)
	commands.CheckText(wrong, "promoCode", c.PromoCode, 0, maxPromoCode)
	wrong.Check(c.PromoCode == "" || len(c.Coupons) == 0, "promoCode", "must not be sent with discounts")
	wrong.Check(len(c.Coupons) <= 1, "discounts", "must be one at most")
	for i, coupon := range c.Coupons {
		wrong.Check(coupon != "", fmt.Sprintf("discounts[%d].coupon", i), "is required")
		checkPaymentID(wrong, fmt.Sprintf("discounts[%d].coupon", i), coupon)
	}
	commands.CheckText(wrong, "referralId", c.ReferralID, 0, maxReferral)
	commands.CheckText(wrong, "affiliate_referral", c.AffiliateReferral, 0, maxReferral)
	wrong.Check(c.ReferralID == "" || c.AffiliateReferral == "" || c.ReferralID == c.AffiliateReferral,
		"affiliate_referral", "must not differ from referralId, whose old name it is")
	return wrong.Err()
}

func (b *Billing) checkReturn(wrong commands.FieldErrors, field, text string) {
	if err := b.ReturnURLs.check(text); err != nil {
		wrong.Check(false, field, "%s", err)
	}
}

// checkPaymentID checks an optional id at the payment provider.
func checkPaymentID(wrong commands.FieldErrors, field, id string) {
	wrong.Check(id == "" || paymentIDPattern.MatchString(id) && utf8.RuneCountInString(id) <= maxPaymentID, field,
		"must be an id at the payment provider")
}

// Checkout creates a page on which a tenant pays, and returns its address and type. A subscriber gets a page that
// changes the plan. The tenant owns what it buys once the provider reports it.
//
// It creates the customer, its fact and the page, in this order and with idempotency keys, so a retry is safe after
// any step. Errors are *commands.Error.
func (b *Billing) Checkout(ctx context.Context, by writer.By, c Checkout) (url, kind string, err error) {
	if err := b.CheckCheckout(c); err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, billingTimeout)
	defer cancel()
	tenant, err := b.tenant(ctx, c.TenantID)
	if err != nil {
		return "", "", err
	}
	if c.Type == SubscriptionCheckout && c.Plan == events.FreePlan {
		return b.cancelPlan(ctx, tenant, c)
	}
	page := CheckoutPage{
		// One of the two is empty.
		TenantID:   c.TenantID,
		SuccessURL: c.SuccessURL,
		CancelURL:  c.CancelURL,
		Referral:   max(c.ReferralID, c.AffiliateReferral),
	}
	if c.Type == SubscriptionCheckout {
		if page.PriceID, err = b.priceOf(tenant, c.Plan); err != nil {
			return "", "", err
		}
	} else {
		page.Product = Product{ID: c.ProductID, Amount: *c.Amount}
	}
	known := tenant.Subscription.CustomerID != ""
	if page.CustomerID, err = b.customer(ctx, by, tenant, c.CustomerID); err != nil {
		return "", "", err
	}
	if page.Discount, err = b.discount(ctx, c); err != nil {
		return "", "", err
	}
	if known || c.CustomerID != "" {
		if c.Type == SubscriptionCheckout {
			list, err := b.subscriptions(ctx, page.CustomerID, tenant.Subscription.ID)
			if err != nil {
				return "", "", err
			}
			if current := manageable(list, tenant.Subscription.ID); current != nil {
				return b.changePlan(ctx, c, page, *current)
			}
		}
	}
	url, err = b.Payments.Checkout(ctx, b.idempotencyKey(c.Key), page)
	return url, c.Type, err
}

// tenant reads a tenant that is to pay. It removes a customer that was deleted at the provider, because that event may
// come later.
func (b *Billing) tenant(ctx context.Context, id string) (state.Tenant, error) {
	if b.Payments == nil {
		return state.Tenant{}, commands.Refuse(commands.Unavailable, "payments are not configured")
	}
	tenant, err := writer.ReadTenant(ctx, b.Writer, id)
	if err == nil && !tenant.Exists {
		err = commands.Refuse(commands.NotFound, "no tenant has the id %q", id)
	}
	if err != nil || tenant.Subscription.CustomerID == "" {
		return tenant, err
	}
	found, err := b.Payments.Customer(ctx, tenant.Subscription.CustomerID)
	if commands.KindOf(err) == commands.NotFound { // of a different account, which the settings may have named before
		return tenant, nil
	}
	if err != nil || !found.Deleted {
		return tenant, err
	}
	if err := b.Follow(ctx, id, ""); err != nil {
		return tenant, err
	}
	return writer.ReadTenant(ctx, b.Writer, id)
}

// priceOf returns the price of a plan that a tenant does not have yet.
func (b *Billing) priceOf(tenant state.Tenant, plan events.Plan) (string, error) {
	if tenant.Subscription.PlanAt(b.Now(), tenant.Sandbox) == plan {
		return "", commands.Refuse(commands.Conflict, "the tenant has the plan %s already", plan)
	}
	price, sold := b.Prices.sold[plan]
	wrong := commands.FieldErrors{}
	wrong.Check(sold, "planId", "is not sold by this service")
	return price, wrong.Err()
}

// customer finds or creates the customer of a tenant. A customer named by the caller must be the tenant's.
func (b *Billing) customer(ctx context.Context, by writer.By, tenant state.Tenant, named string) (id string,
	err error) {
	known := tenant.Subscription.CustomerID
	wrong := commands.FieldErrors{}
	wrong.Check(known == "" || named == "" || named == known, "customerId", "is not the customer of the tenant")
	if err := wrong.Err(); err != nil || known != "" {
		return known, err
	}
	if named == "" {
		// All checkouts at about the same time share the key. It changes after a customer was deleted.
		id, err = b.Payments.NewCustomer(ctx,
			b.idempotencyKey(fmt.Sprintf("flagledger-customer-%s-%d", tenant.ID, tenant.Customers)), tenant.ID)
	} else {
		var found PaymentCustomer
		found, err = b.Payments.Customer(ctx, named)
		// The refusal reveals no customers of others.
		if commands.KindOf(err) == commands.NotFound || err == nil && found.TenantID != tenant.ID {
			wrong.Check(false, "customerId", "is not the customer of the tenant")
			err = wrong.Err()
		}
		id = named
	}
	if err != nil {
		return "", err
	}
	_, _, err = writer.Do(ctx, b.Writer, by,
		commands.NoteCustomer{TenantRef: commands.TenantRef{TenantID: tenant.ID}, CustomerID: id})
	if commands.KindOf(err) == commands.Conflict && named == "" { // a concurrent checkout has created one
		if now, err := writer.ReadTenant(ctx, b.Writer, tenant.ID); err == nil && now.Subscription.CustomerID != "" {
			return now.Subscription.CustomerID, nil
		}
	}
	return id, err
}

// providerKeyTTL limits how long a key is used at the payment provider.
const providerKeyTTL = 10 * time.Minute

// idempotencyKey returns a key that changes from time to time. The provider repeats a failure of its own for a day for
// one key, even after it has recovered.
func (b *Billing) idempotencyKey(key string) string {
	return fmt.Sprintf("%s-%d", key, b.Now().Truncate(providerKeyTTL).Unix())
}

func (b *Billing) discount(ctx context.Context, c Checkout) (d Discount, err error) {
	if len(c.Coupons) > 0 {
		d.Coupon = c.Coupons[0]
	}
	if c.PromoCode != "" {
		if d.Promotion, err = b.Payments.PromotionCode(ctx, c.PromoCode); commands.KindOf(err) == commands.NotFound {
			wrong := commands.FieldErrors{}
			wrong.Check(false, "promoCode", "is no code that can be used")
			err = wrong.Err()
		}
	}
	return d, err
}

// subscriptions lists a customer's subscriptions to plans. It returns Conflict if the provider does not know the
// customer.
func (b *Billing) subscriptions(ctx context.Context, customerID, notedID string) ([]PaymentSubscription, error) {
	list, err := b.Payments.Subscriptions(ctx, customerID)
	if commands.KindOf(err) == commands.NotFound {
		err = &commands.Error{Kind: commands.Conflict,
			Detail: "the payment provider does not know the tenant's customer", Err: err}
	}
	return b.onlyPlans(list, notedID), err
}

// onlyPlans removes other things that the operator sells to the customer: subscriptions without a known price, unless
// bought on a page of the service or recorded.
func (b *Billing) onlyPlans(list []PaymentSubscription, notedID string) []PaymentSubscription {
	return slices.DeleteFunc(list, func(s PaymentSubscription) bool {
		_, _, known := b.Prices.planItem(s)
		return !known && s.TenantID == "" && s.ID != notedID
	})
}

// manageable returns the subscription that the customer can manage: the recorded one if possible, otherwise the
// newest.
func manageable(list []PaymentSubscription, notedID string) *PaymentSubscription {
	var found *PaymentSubscription
	for i := range list {
		if s := &list[i]; s.Status.Manageable() && (found == nil || s.ID == notedID) {
			found = s
		}
	}
	return found
}

// changePlan creates a page that confirms the change of a subscription to the price of another plan.
func (b *Billing) changePlan(
	ctx context.Context, c Checkout, page CheckoutPage, s PaymentSubscription,
) (url, kind string, err error) {
	item, plan, found := b.Prices.planItem(s)
	switch {
	case !found && len(s.Items) == 1:
		item = s.Items[0]
	case !found:
		return "", "", commands.Refuse(commands.Conflict,
			"the tenant's subscription is not for a plan; the operator of the service can change it")
	case plan == c.Plan:
		return "", "", commands.Refuse(commands.Conflict, "the tenant has a subscription to the plan %s already", plan)
	}
	url, err = b.Payments.Portal(ctx, b.idempotencyKey(c.Key), PortalPage{
		CustomerID: page.CustomerID,
		ReturnURL:  c.CancelURL,
		Change: &PlanChange{
			SubscriptionID: s.ID,
			ItemID:         item.ID,
			PriceID:        page.PriceID,
			Discount:       page.Discount,
			DoneURL:        c.SuccessURL,
		},
	})
	return url, PlanChangeCheckout, err
}

// cancelPlan creates a page that confirms the end of a tenant's subscription. Without a subscription it returns the
// success page.
func (b *Billing) cancelPlan(ctx context.Context, tenant state.Tenant, c Checkout) (url, kind string, err error) {
	customer := tenant.Subscription.CustomerID
	wrong := commands.FieldErrors{}
	wrong.Check(c.CustomerID == "" || c.CustomerID == customer, "customerId", "is not the customer of the tenant")
	if err := wrong.Err(); err != nil {
		return "", "", err
	}
	if customer == "" {
		return c.SuccessURL, SubscriptionCheckout, nil
	}
	list, err := b.subscriptions(ctx, customer, tenant.Subscription.ID)
	if err != nil {
		return "", "", err
	}
	current := manageable(list, tenant.Subscription.ID)
	if current == nil {
		return c.SuccessURL, SubscriptionCheckout, nil
	}
	url, err = b.Payments.Portal(ctx, b.idempotencyKey(c.Key),
		PortalPage{CustomerID: customer, ReturnURL: c.CancelURL, Cancel: current.ID})
	return url, PlanChangeCheckout, err
}

// CheckPortal checks the URL that a portal leads back to.
func (b *Billing) CheckPortal(returnURL string) error {
	wrong := commands.FieldErrors{}
	b.checkReturn(wrong, "returnUrl", returnURL)
	return wrong.Err()
}

// Portal creates a page on which a tenant manages its subscription, payment methods and invoices. A retry uses the
// same key. Errors are *commands.Error.
func (b *Billing) Portal(ctx context.Context, tenantID, returnURL, key string) (url string, err error) {
	if err := b.CheckPortal(returnURL); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, billingTimeout)
	defer cancel()
	tenant, err := b.tenant(ctx, tenantID)
	if err != nil {
		return "", err
	}
	if tenant.Subscription.CustomerID == "" {
		return "", commands.Refuse(commands.Conflict, "the tenant is not a customer yet: it has never checked out")
	}
	return b.Payments.Portal(ctx, b.idempotencyKey(key),
		PortalPage{CustomerID: tenant.Subscription.CustomerID, ReturnURL: returnURL})
}
