package billing

import (
	"context"
	"errors"
	"time"

	"flagledger/events"
)

// Payments is the payment provider. Calls with an effect take an idempotency key.
//
// Errors are *commands.Error, without secrets and addresses: Unavailable if the provider cannot be reached, is too busy
// or gives an unreadable answer.
type Payments interface {
	// NewCustomer creates a customer for a tenant.
	NewCustomer(ctx context.Context, key, tenantID string) (customerID string, err error)
	// Customer returns a customer, or NotFound.
	Customer(ctx context.Context, customerID string) (PaymentCustomer, error)
	// Subscriptions lists the newest 100 subscriptions of a customer, also ended ones, newest first. It returns
	// NotFound for an unknown customer.
	Subscriptions(ctx context.Context, customerID string) ([]PaymentSubscription, error)
	// Subscription returns a subscription, or NotFound.
	Subscription(ctx context.Context, id string) (PaymentSubscription, error)
	// CancelSubscription ends a subscription at once. It is idempotent.
	CancelSubscription(ctx context.Context, id string) error
	// PromotionCode returns the promotion of a customer's code, or NotFound if there is no usable one.
	PromotionCode(ctx context.Context, code string) (id string, err error)
	// Checkout creates a page for paying. A page for a plan closes the customer's other pages for plans, even if it
	// fails afterwards. Invalid names the request's fields that the provider refuses.
	Checkout(ctx context.Context, key string, c CheckoutPage) (url string, err error)
	// CloseCheckouts closes a customer's pages of Checkout, or only those for plans. It is idempotent.
	CloseCheckouts(ctx context.Context, customerID string, plansOnly bool) error
	// Portal creates a page on which a customer manages payments. It returns Conflict if the provider's settings do
	// not allow it.
	Portal(ctx context.Context, key string, p PortalPage) (url string, err error)
	// Event parses a message of the provider. It returns ErrSignature if the provider did not sign it within five
	// minutes of now, and ErrUnreadableEvent if it is signed but cannot be parsed.
	Event(payload []byte, signature string, now time.Time) (PaymentEvent, error)
}

// ErrSignature reports that a message is not from the payment provider.
var ErrSignature = errors.New("the message has no valid signature of the payment provider")

// ErrUnreadableEvent reports a signed message that cannot be parsed.
var ErrUnreadableEvent = errors.New("the message is not a readable event of the payment provider")

// PaymentCustomer is a customer at the payment provider.
type PaymentCustomer struct {
	ID       string
	TenantID string // empty if the service did not create it, or it was deleted
	Deleted  bool
}

// PaymentSubscription is a subscription at the payment provider.
type PaymentSubscription struct {
	ID                string
	CustomerID        string
	TenantID          string // noted by the service; empty if it was not bought on a page of the service
	Status            events.SubscriptionStatus
	Items             []PaymentItem
	PeriodStart       time.Time
	PeriodEnd         time.Time
	CancelAtPeriodEnd bool
}

// PaymentItem is a part of a subscription with its own price.
type PaymentItem struct {
	ID           string
	PriceID      string
	BillingCycle events.BillingCycle // empty if neither
}

// CheckoutPage is a page for subscribing to a plan, or for buying a product once.
type CheckoutPage struct {
	TenantID   string
	CustomerID string
	PriceID    string  // of the plan; empty for a product
	Product    Product // if there is no price
	Discount   Discount
	Referral   string
	SuccessURL string
	CancelURL  string
}

// Product is a one-time purchase.
type Product struct {
	ID     string
	Amount int64 // in the smallest unit of the currency
}

// Discount is a coupon or a promotion code; the zero Discount means none.
type Discount struct {
	Coupon    string
	Promotion string // its id, not the customer's code
}

// PortalPage is a page on which a customer manages payments.
type PortalPage struct {
	CustomerID string
	ReturnURL  string
	Change     *PlanChange // the page asks to confirm it
	Cancel     string      // the page asks to confirm this subscription's end; empty for none
}

// PlanChange changes the price of a subscription.
type PlanChange struct {
	SubscriptionID string
	ItemID         string
	PriceID        string
	Discount       Discount
	DoneURL        string // the page leads here after the confirmation
}

// PaymentEvent is a change at the payment provider. Read the new state there: events come late, repeatedly and in any
// order.
type PaymentEvent struct {
	ID         string
	CustomerID string // empty if it concerns no customer's subscription
	TenantID   string // noted by the service on what has changed; may be empty
}
