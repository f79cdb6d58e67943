package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"flagledger/events"
)

// ReadEvent reads what the payment provider tells of a change. ErrSignature says that the message is not the
// provider's, ErrUnreadableEvent that it is and cannot be read, and an *Error that messages of the provider are not
// configured.
func (b *Billing) ReadEvent(payload []byte, signature string) (PaymentEvent, error) {
	return b.Payments.Event(payload, signature, b.Now())
}

// Receive has a change at the payment provider followed later. It may be repeated. Its errors are *Error.
func (b *Billing) Receive(ctx context.Context, e PaymentEvent) error {
	if e.CustomerID == "" {
		return nil
	}
	return b.Events.Enqueue(ctx, e)
}

// maxFollow is how often a subscription is read again because it has changed meanwhile.
const maxFollow = 5

// Follow makes the subscription of a tenant what the payment provider says it is now. Of a deleted tenant it ends what
// can be paid for. Without a payment provider it does nothing.
//
// Either the tenant or the customer may be empty. A customer belongs to the tenant that the service noted on it,
// whatever an event says; one without a note and without a tenant is left alone.
//
// It may be repeated, and several may do it at once: each reads the subscription again after changing it, so the last
// one leaves what the provider says.
//
// A subscription at an unknown price is noted, and the tenant keeps its plan. That is an error, so that the operator is
// told.
func (b *Billing) Follow(ctx context.Context, tenantID, customerID string) error {
	if b.Payments == nil {
		return nil
	}
	tenantID, err := b.ownerOf(ctx, tenantID, customerID)
	if err != nil || tenantID == "" {
		return err
	}
	for range maxFollow {
		changed, err := b.follow(ctx, tenantID, customerID)
		if err != nil || !changed {
			return err
		}
	}
	return fmt.Errorf("the subscription of the tenant %s goes on changing", tenantID)
}

// ownerOf returns the tenant that a customer belongs to, and the given one if the customer is unknown or bears no note.
func (b *Billing) ownerOf(ctx context.Context, tenantID, customerID string) (string, error) {
	if customerID == "" {
		return tenantID, nil
	}
	if tenantID != "" {
		tenant, err := ReadTenant(ctx, b.Writer, tenantID)
		if err != nil || tenant.Subscription.CustomerID == customerID {
			return tenantID, err
		}
	}
	found, err := b.Payments.Customer(ctx, customerID)
	if KindOf(err) == NotFound {
		return tenantID, nil
	}
	if err != nil {
		return "", err
	}
	if tenantID != "" && found.TenantID != "" && found.TenantID != tenantID {
		b.Log.WarnContext(ctx, "an event of the payment provider names another tenant than its customer does", "event",
			tenantID, "customer", found.TenantID)
	}
	return cmp.Or(found.TenantID, tenantID), nil
}

func (b *Billing) follow(ctx context.Context, tenantID, customerID string) (changed bool, err error) {
	tenant, err := ReadTenant(ctx, b.Writer, tenantID)
	if err != nil || tenant.ID == "" { // another service's, which has the same account at the provider
		return false, err
	}
	if !tenant.Exists {
		return false, b.endPayments(ctx, tenant, customerID)
	}
	noted := tenant.Subscription
	list, err := b.subscriptionsOf(ctx, noted, customerID)
	if err != nil {
		return false, err
	}
	list = slices.DeleteFunc(list, func(s PaymentSubscription) bool {
		return s.TenantID != "" && s.TenantID != tenantID && s.ID != noted.ID
	})
	current, err := b.current(ctx, tenantID, noted, list)
	if err != nil {
		return false, err
	}
	cmd, err := b.changeToNote(ctx, tenant, current)
	if err != nil || cmd == nil {
		return false, err
	}
	// a page that is still open would sell a second one
	if current != nil && current.ID != noted.ID && current.Status.Manageable() {
		if err := b.Payments.CloseCheckouts(ctx, current.CustomerID, true); err != nil {
			return false, err
		}
	}
	_, done, err := Do(ctx, b.Writer, BySystem("payment provider"), cmd)
	if err != nil || done.Position != (events.Position{}) {
		return true, err
	}
	if current != nil && current.Status.Manageable() {
		if _, _, known := b.Prices.planItem(*current); !known {
			err = fmt.Errorf("the subscription %s is at no price that STRIPE_PRICES names", current.ID)
		}
	}
	return false, err
}

// endPayments has nobody pay for a tenant that was deleted any more. What was bought in the moment of the deletion is
// cancelled too, and the log warns of it: giving the money back is left to the operator.
func (b *Billing) endPayments(ctx context.Context, tenant Tenant, customerID string) error {
	// The pages come first: what is paid for on one before it is closed is listed afterwards.
	for _, id := range customersOf(tenant.Subscription, customerID) {
		if err := b.Payments.CloseCheckouts(ctx, id, false); err != nil {
			return err
		}
	}
	list, err := b.subscriptionsOf(ctx, tenant.Subscription, customerID)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Status == events.Canceled || s.Status == events.IncompleteExpired { // unpaid and paused ones may be billed again
			continue
		}
		if err := b.Payments.CancelSubscription(ctx, s.ID); err != nil {
			return err
		}
		if s.ID == tenant.Subscription.ID {
			b.Log.InfoContext(ctx, "the subscription of a tenant that was deleted is cancelled", "tenant", tenant.ID,
				"subscription", s.ID)
		} else {
			b.Log.WarnContext(ctx,
				"a subscription that a deleted tenant did not have is cancelled; what was paid is not given back", "tenant",
				tenant.ID, "subscription", s.ID)
		}
	}
	return nil
}

// changeToNote is the command that notes what the provider has; nil where there is nothing to note. A customer that was
// deleted is noted no longer.
func (b *Billing) changeToNote(
	ctx context.Context, tenant Tenant, current *PaymentSubscription,
) (Command[Tenant], error) {
	noted := tenant.Subscription.CustomerID
	if current == nil {
		gone, err := b.customerDeleted(ctx, noted)
		if err != nil || !gone {
			return nil, err
		}
		return NoteCustomer{TenantRef: TenantRef{tenant.ID}, Replaces: noted}, nil
	}
	set := b.setSubscription(tenant, *current)
	if current.Status.Manageable() {
		return set, nil
	}
	gone, err := b.customerDeleted(ctx, current.CustomerID)
	if gone {
		set.Subscription.CustomerID = ""
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

// customersOf lists the customer that is noted of a tenant, and another one that is the tenant's as well.
func customersOf(noted events.Subscription, customerID string) []string {
	list := slices.Compact([]string{noted.CustomerID, customerID})
	return slices.DeleteFunc(list, func(id string) bool { return id == "" })
}

// subscriptionsOf lists their subscriptions to plans.
func (b *Billing) subscriptionsOf(
	ctx context.Context, noted events.Subscription, customerID string,
) (list []PaymentSubscription, err error) {
	for _, id := range customersOf(noted, customerID) {
		found, err := b.Payments.Subscriptions(ctx, id)
		if err != nil && KindOf(err) != NotFound { // a customer that was deleted may not be found, its subscriptions are
			return nil, err
		}
		list = append(list, found...)
	}
	return b.onlyPlans(list, noted.ID), nil
}

// current is the subscription that counts: one that can be managed, the noted one rather than another, and else the
// noted one, which has ended. It is nil where the provider has none that the tenant was ever on.
func (b *Billing) current(
	ctx context.Context, tenantID string, noted events.Subscription, list []PaymentSubscription,
) (*PaymentSubscription, error) {
	live := 0
	for _, s := range list {
		if s.Status.Manageable() {
			live++
		}
	}
	if live > 1 {
		b.Log.WarnContext(ctx, "a tenant pays for several subscriptions; one counts", "tenant", tenantID, "subscriptions",
			live)
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

// setSubscription makes a subscription of the provider the tenant's. One at a price that is not known changes no plan.
func (b *Billing) setSubscription(tenant Tenant, s PaymentSubscription) SetSubscription {
	item, plan, known := b.Prices.planItem(s)
	if !known {
		plan = tenant.Subscription.Plan
		if s.ID != tenant.Subscription.ID { // whose plan may be over
			plan = tenant.Subscription.PlanAt(b.Now(), tenant.Sandbox)
		}
	}
	return SetSubscription{
		TenantRef: TenantRef{tenant.ID}, Now: b.Now(),
		Subscription: events.Subscription{
			ID: s.ID, CustomerID: s.CustomerID, Plan: plan, Status: s.Status, BillingCycle: item.BillingCycle,
			PeriodStart: s.PeriodStart, PeriodEnd: s.PeriodEnd, CancelAtPeriodEnd: s.CancelAtPeriodEnd,
		},
	}
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
