package commands

import (
	"context"
	"errors"
	"time"

	"flagledger/events"
)

// Payments is the payment provider. A call that has an effect is repeated with the same key, and has the effect once.
//
// Errors are *Error, without secrets and addresses: Unavailable if the provider cannot be reached, is too busy or gives
// an answer that cannot be read.
type Payments interface {
	// NewCustomer makes a customer of a tenant.
	NewCustomer(ctx context.Context, key, tenantID string) (customerID string, err error)
	// Customer finds a customer, NotFound where there is none.
	Customer(ctx context.Context, customerID string) (PaymentCustomer, error)
	// Subscriptions lists the newest 100 subscriptions of a customer, also those that have ended, the newest first.
	// NotFound says that there is no such customer.
	Subscriptions(ctx context.Context, customerID string) ([]PaymentSubscription, error)
	// Subscription finds a subscription, NotFound where there is none.
	Subscription(ctx context.Context, id string) (PaymentSubscription, error)
	// CancelSubscription ends a subscription at once. It may be repeated.
	CancelSubscription(ctx context.Context, id string) error
	// PromotionCode finds the promotion that a customer's code stands for, NotFound where it stands for none that can be
	// used.
	PromotionCode(ctx context.Context, code string) (id string, err error)
	// Checkout makes a page on which something is paid for. One for a plan closes the customer's other ones for a plan,
	// also where it fails afterwards. Invalid names the fields of the request that the provider refuses.
	Checkout(ctx context.Context, key string, c CheckoutPage) (url string, err error)
	// CloseCheckouts has nobody pay any more on the pages that Checkout made for a customer, or on those for a plan alone.
	// It may be repeated.
	CloseCheckouts(ctx context.Context, customerID string, plansOnly bool) error
	// Portal makes a page on which a customer manages what they pay for. Conflict says that the provider's settings do not
	// allow it.
	Portal(ctx context.Context, key string, p PortalPage) (url string, err error)
	// Event reads what the provider tells of a change. The error is ErrSignature if the provider has not signed it within
	// five minutes of now, and ErrUnreadableEvent if it is signed and cannot be read.
	Event(payload []byte, signature string, now time.Time) (PaymentEvent, error)
}

// ErrSignature says that a message is not the payment provider's.
var ErrSignature = errors.New("the message does not bear a signature of the payment provider that holds now")

// ErrUnreadableEvent says that a message bears the payment provider's signature, and is no event that can be read.
var ErrUnreadableEvent = errors.New("the message is no event of the payment provider that can be read")

// PaymentCustomer is a customer at the payment provider.
type PaymentCustomer struct {
	ID       string
	TenantID string // empty for one that the service did not make, or that was deleted
	Deleted  bool
}

// PaymentSubscription is a subscription as the payment provider has it.
type PaymentSubscription struct {
	ID                string
	CustomerID        string
	TenantID          string // that the service noted on it; empty for one that was not bought on a page of the service
	Status            events.SubscriptionStatus
	Items             []PaymentItem
	PeriodStart       time.Time
	PeriodEnd         time.Time
	CancelAtPeriodEnd bool
}

// PaymentItem is a part of a subscription, which has a price.
type PaymentItem struct {
	ID           string
	PriceID      string
	BillingCycle events.BillingCycle // empty where it is neither
}

// CheckoutPage is a page on which a plan is subscribed to, or a product is paid for once.
type CheckoutPage struct {
	TenantID   string
	CustomerID string
	PriceID    string  // of the plan; empty for a product
	Product    Product // where there is no price
	Discount   Discount
	Referral   string
	SuccessURL string
	CancelURL  string
}

// Product is something that is paid for once.
type Product struct {
	ID     string
	Amount int64 // in the smallest unit of the currency
}

// Discount is a coupon or a promotion code; the zero Discount is none.
type Discount struct {
	Coupon    string
	Promotion string // its id, not what a customer types
}

// PortalPage is a page on which a customer manages what they pay for.
type PortalPage struct {
	CustomerID string
	ReturnURL  string
	Change     *PlanChange // which the page asks to confirm
	Cancel     string      // the id of the subscription whose end it asks to confirm; empty for none
}

// PlanChange gives a subscription another price.
type PlanChange struct {
	SubscriptionID string
	ItemID         string
	PriceID        string
	Discount       Discount
	DoneURL        string // where the page leads to once it is confirmed
}

// PaymentEvent is a change at the payment provider. What has changed is to be read there: events come late, repeatedly
// and in any order.
type PaymentEvent struct {
	ID         string
	CustomerID string // empty where it concerns no customer's subscription
	TenantID   string // that the service noted on what has changed; may be empty
}
