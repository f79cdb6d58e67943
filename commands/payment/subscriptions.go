package payment

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/customer"
	"github.com/stripe/stripe-go/v76/promotioncode"
	"github.com/stripe/stripe-go/v76/subscription"

	"flagledger/commands"
	"flagledger/commands/billing"
	"flagledger/events"
)

// tenantKey is the metadata key for the tenant of a customer, a subscription or a payment. Customers cannot change
// metadata.
const tenantKey = "flagledger_tenant"

// maxListed is the most objects that Stripe lists at once.
const maxListed = 100

// NewCustomer implements billing.Payments.
func (s *Stripe) NewCustomer(ctx context.Context, key, tenantID string) (string, error) {
	p := &stripe.CustomerParams{
		Params: params(ctx, key), Description: stripe.String("flagledger tenant " + tenantID),
		Metadata: map[string]string{tenantKey: tenantID},
	}
	made, err := customer.Client{B: s.backend, Key: s.settings.SecretKey}.New(p)
	if err != nil {
		return "", unavailable(err)
	}
	if made.ID == "" {
		return "", unavailable(errUnreadable)
	}
	return made.ID, nil
}

// Customer implements billing.Payments.
func (s *Stripe) Customer(ctx context.Context, customerID string) (billing.PaymentCustomer, error) {
	found, err := customer.Client{
		B:   s.backend,
		Key: s.settings.SecretKey,
	}.Get(customerID, &stripe.CustomerParams{Params: params(ctx, "")})
	if err != nil {
		return billing.PaymentCustomer{}, asFound("customer", err)
	}
	if found.ID != customerID {
		return billing.PaymentCustomer{}, unavailable(errUnreadable)
	}
	return billing.PaymentCustomer{ID: found.ID, TenantID: found.Metadata[tenantKey], Deleted: found.Deleted}, nil
}

// Subscriptions implements billing.Payments.
func (s *Stripe) Subscriptions(ctx context.Context, customerID string) ([]billing.PaymentSubscription, error) {
	page := subscription.Client{B: s.backend, Key: s.settings.SecretKey}.List(&stripe.SubscriptionListParams{
		ListParams: stripe.ListParams{Context: ctx, Limit: stripe.Int64(maxListed), Single: true},
		Customer:   stripe.String(customerID), Status: stripe.String("all"),
	})
	var list []billing.PaymentSubscription
	for page.Next() {
		one, err := read(page.Subscription())
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	if err := page.Err(); err != nil {
		if unknownCustomer(err) {
			return nil, &commands.Error{
				Kind:   commands.NotFound,
				Detail: "the payment provider does not know the customer",
				Err:    nameless(err),
			}
		}
		return nil, unavailable(err)
	}
	if page.SubscriptionList().URL == "" {
		return nil, unavailable(errUnreadable)
	}
	return list, nil
}

// unknownCustomer reports whether Stripe refused a list because it does not know the customer.
func unknownCustomer(err error) bool {
	refusal, ok := errors.AsType[*stripe.Error](err)
	return ok && refusal.Code == stripe.ErrorCodeResourceMissing && refusal.Param == "customer"
}

// Subscription implements billing.Payments.
func (s *Stripe) Subscription(ctx context.Context, id string) (billing.PaymentSubscription, error) {
	found, err := subscription.Client{
		B:   s.backend,
		Key: s.settings.SecretKey,
	}.Get(id, &stripe.SubscriptionParams{Params: params(ctx, "")})
	if err != nil {
		return billing.PaymentSubscription{}, asFound("subscription", err)
	}
	return read(found)
}

// CancelSubscription implements billing.Payments.
func (s *Stripe) CancelSubscription(ctx context.Context, id string) error {
	_, err := subscription.Client{
		B:   s.backend,
		Key: s.settings.SecretKey,
	}.Cancel(id, &stripe.SubscriptionCancelParams{Params: params(ctx, "")})
	// It has already ended.
	if refusal, ok := errors.AsType[*stripe.Error](err); ok && refusal.HTTPStatusCode == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// read converts a subscription of Stripe. It returns an error if a required part is missing.
func read(s *stripe.Subscription) (billing.PaymentSubscription, error) {
	if s == nil || s.ID == "" || s.Customer == nil || s.Customer.ID == "" ||
		!events.SubscriptionStatus(s.Status).Known() ||
		s.Items == nil {
		return billing.PaymentSubscription{}, unavailable(errUnreadable)
	}
	found := billing.PaymentSubscription{
		ID:                s.ID,
		CustomerID:        s.Customer.ID,
		TenantID:          s.Metadata[tenantKey],
		Status:            events.SubscriptionStatus(s.Status),
		CancelAtPeriodEnd: endsWithPeriod(s),
		PeriodStart:       instant(s.CurrentPeriodStart),
		PeriodEnd:         instant(s.CurrentPeriodEnd),
	}
	for _, item := range s.Items.Data {
		if item == nil || item.ID == "" || item.Price == nil || item.Price.ID == "" {
			return billing.PaymentSubscription{}, unavailable(errUnreadable)
		}
		found.Items = append(found.Items,
			billing.PaymentItem{ID: item.ID, PriceID: item.Price.ID, BillingCycle: cycle(item.Price.Recurring)})
	}
	return found, nil
}

// endsWithPeriod reports whether a subscription is not renewed: it is cancelled at the end of its period, or earlier.
func endsWithPeriod(s *stripe.Subscription) bool {
	return s.CancelAtPeriodEnd || s.CancelAt != 0 && s.CancelAt <= s.CurrentPeriodEnd
}

// instant converts a time of Stripe, in seconds since 1970.
func instant(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

func cycle(r *stripe.PriceRecurring) events.BillingCycle {
	switch {
	case r == nil:
	case r.Interval == stripe.PriceRecurringIntervalMonth && r.IntervalCount == 1:
		return events.Monthly
	case r.Interval == stripe.PriceRecurringIntervalYear && r.IntervalCount == 1,
		r.Interval == stripe.PriceRecurringIntervalMonth && r.IntervalCount == 12:
		return events.Yearly
	}
	return ""
}

// PromotionCode implements billing.Payments.
func (s *Stripe) PromotionCode(ctx context.Context, code string) (string, error) {
	page := promotioncode.Client{B: s.backend, Key: s.settings.SecretKey}.List(&stripe.PromotionCodeListParams{
		ListParams: stripe.ListParams{Context: ctx, Limit: stripe.Int64(1), Single: true},
		Code:       stripe.String(code), Active: stripe.Bool(true),
	})
	if page.Next() {
		if found := page.PromotionCode(); found != nil && found.ID != "" {
			return found.ID, nil
		}
		return "", unavailable(errUnreadable)
	}
	if err := page.Err(); err != nil {
		return "", unavailable(err)
	}
	if page.PromotionCodeList().URL == "" {
		return "", unavailable(errUnreadable)
	}
	return "", &commands.Error{Kind: commands.NotFound, Detail: "no promotion that can be used has the code"}
}
