package commands

import (
	"context"
	"fmt"
	"slices"

	"flagledger/events"
)

// Receive takes in what the payment provider tells of a change, and has it followed later. It may be repeated. ErrSignature says that the message is not the
// provider's, ErrUnreadableEvent that it is and cannot be read; other errors are *Error.
func (b *Billing) Receive(ctx context.Context, payload []byte, signature string) error {
	if b.Payments == nil {
		return refuse(Unavailable, "payments are not configured")
	}
	e, err := b.Payments.Event(payload, signature, b.Now())
	if err != nil || e.CustomerID == "" {
		return err
	}
	return b.Events.Enqueue(ctx, e)
}

// maxFollow is how often a subscription is read again because it has changed meanwhile.
const maxFollow = 5

// Follow makes the subscription of a tenant what the payment provider says it is now. Either the tenant or a customer may be empty: a customer without a
// tenant is asked for the tenant that the service noted on it, and is left alone where there is none. It may be repeated and done by several at once:
// whoever changes the subscription reads it again afterwards, so the last one to change it leaves what the provider says. Of a tenant that is deleted
// it cancels the subscriptions. Without a payment provider there is nothing to follow.
func (b *Billing) Follow(ctx context.Context, tenantID, customerID string) error {
	if b.Payments == nil {
		return nil
	}
	if tenantID == "" {
		found, err := b.Payments.Customer(ctx, customerID)
		if KindOf(err) == NotFound || err == nil && found.TenantID == "" {
			return nil
		}
		if err != nil {
			return err
		}
		tenantID = found.TenantID
	}
	for range maxFollow {
		changed, err := b.follow(ctx, tenantID, customerID)
		if err != nil || !changed {
			return err
		}
	}
	return fmt.Errorf("the subscription of the tenant %s goes on changing", tenantID)
}

func (b *Billing) follow(ctx context.Context, tenantID, customerID string) (changed bool, err error) {
	tenant, err := ReadTenant(ctx, b.Writer, tenantID)
	if err != nil || tenant.ID == "" { // another service's, which has the same account at the provider
		return false, err
	}
	noted := tenant.Subscription
	list, err := b.subscriptionsOf(ctx, noted, customerID)
	if err != nil {
		return false, err
	}
	if !tenant.Exists {
		for _, s := range list {
			if s.Status != events.Canceled && s.Status != events.IncompleteExpired { // unpaid and paused ones may be billed again
				b.Log.InfoContext(ctx, "the subscription of a tenant that was deleted is cancelled", "tenant", tenantID, "subscription", s.ID)
				if err := b.Payments.CancelSubscription(ctx, s.ID); err != nil {
					return false, err
				}
			}
		}
		return false, nil
	}
	current, err := b.current(ctx, tenantID, noted, list)
	if err != nil {
		return false, err
	}
	cmd, err := b.news(ctx, tenantID, current, noted)
	if err != nil || cmd == nil {
		return false, err
	}
	_, done, err := Do(ctx, b.Writer, By{Actor: events.Actor{Kind: events.SystemActor, ID: "payment provider"}}, cmd)
	return done.Position != (events.Position{}), err
}

// news is the command that notes what the provider has; nil where there is nothing to note. A customer that was deleted is noted no longer.
func (b *Billing) news(ctx context.Context, tenantID string, current *PaymentSubscription, noted events.Subscription) (Command[Tenant], error) {
	if current == nil {
		gone, err := b.customerDeleted(ctx, noted.CustomerID)
		if err != nil || !gone {
			return nil, err
		}
		return NoteCustomer{TenantRef: TenantRef{tenantID}, Replaces: noted.CustomerID}, nil
	}
	set, err := b.setSubscription(tenantID, *current, noted)
	if err == nil && !current.Status.Manageable() {
		var gone bool
		if gone, err = b.customerDeleted(ctx, current.CustomerID); gone {
			set.Subscription.CustomerID = ""
		}
	}
	return set, err
}

// customerDeleted reports whether a customer was deleted at the provider, or is not known there.
func (b *Billing) customerDeleted(ctx context.Context, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	found, err := b.Payments.Customer(ctx, id)
	if KindOf(err) == NotFound {
		return true, nil
	}
	return err == nil && found.Deleted, err
}

// subscriptionsOf lists the subscriptions of the customer that is noted of a tenant, and of another one that is the tenant's as well.
func (b *Billing) subscriptionsOf(ctx context.Context, noted events.Subscription, customerID string) (list []PaymentSubscription, err error) {
	for i, id := range []string{noted.CustomerID, customerID} {
		if id == "" || i > 0 && id == noted.CustomerID {
			continue
		}
		found, err := b.Payments.Subscriptions(ctx, id)
		if err != nil && KindOf(err) != NotFound { // a customer that was deleted may not be found, its subscriptions are
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// current is the subscription that counts: one that can be managed, the noted one rather than another, and else the noted one, which has ended. It is nil
// where the provider has none that the tenant was ever on.
func (b *Billing) current(ctx context.Context, tenantID string, noted events.Subscription, list []PaymentSubscription) (*PaymentSubscription, error) {
	live := 0
	for _, s := range list {
		if s.Status.Manageable() {
			live++
		}
	}
	if live > 1 {
		b.Log.WarnContext(ctx, "a tenant pays for several subscriptions; one counts", "tenant", tenantID, "subscriptions", live)
	}
	if s := manageable(list, noted.ID); s != nil {
		return s, nil
	}
	if noted.ID == "" {
		return nil, nil
	}
	if i := slices.IndexFunc(list, func(s PaymentSubscription) bool { return s.ID == noted.ID }); i >= 0 {
		return &list[i], nil
	}
	// That the provider does not list it is no proof that it has ended: the settings may name another account.
	found, err := b.Payments.Subscription(ctx, noted.ID)
	return &found, err
}

// setSubscription makes a subscription of the provider the tenant's.
func (b *Billing) setSubscription(tenantID string, s PaymentSubscription, noted events.Subscription) (SetSubscription, error) {
	item, plan, found := b.Prices.planItem(s)
	if !found && s.Status.Manageable() {
		return SetSubscription{}, fmt.Errorf("the subscription %s is at no price that STRIPE_PRICES names", s.ID)
	}
	if !found {
		plan = noted.Plan
	}
	return SetSubscription{
		TenantRef: TenantRef{tenantID}, Now: b.Now(),
		Subscription: events.Subscription{
			ID: s.ID, CustomerID: s.CustomerID, Plan: plan, Status: s.Status, BillingCycle: item.BillingCycle,
			PeriodStart: s.PeriodStart, PeriodEnd: s.PeriodEnd, CancelAtPeriodEnd: s.CancelAtPeriodEnd,
		},
	}, nil
}

// NoteCustomer notes which customer of the payment provider a tenant is.
type NoteCustomer struct {
	TenantRef
	CustomerID string // empty where the customer was deleted there
	Replaces   string // the one that was noted before; empty for none
}

func (c NoteCustomer) decide(t Tenant) ([]events.Fact, error) {
	if err := c.admit(t); err != nil {
		return nil, err
	}
	if t.Subscription.CustomerID != c.CustomerID && t.Subscription.CustomerID != c.Replaces {
		return nil, refuse(Conflict, "the tenant has become another customer meanwhile")
	}
	to := t.Subscription
	to.CustomerID = c.CustomerID
	return changeSubscription(t.Subscription, to), nil
}
