package billing

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/events/state"
)

// ReadEvent parses a message of the payment provider. It returns ErrSignature if the signature is wrong,
// ErrUnreadableEvent if it cannot be parsed, and an *commands.Error if messages are not configured.
func (b *Billing) ReadEvent(payload []byte, signature string) (PaymentEvent, error) {
	return b.Payments.Event(payload, signature, b.Now())
}

// Receive schedules the handling of an event of the payment provider. It is idempotent. Errors are *commands.Error.
func (b *Billing) Receive(ctx context.Context, e PaymentEvent) error {
	if e.CustomerID == "" {
		return nil
	}
	return b.Events.Enqueue(ctx, e)
}

// maxFollow limits how often a subscription is read again after concurrent changes.
const maxFollow = 5

// Follow sets a tenant's subscription to what the payment provider says now; for a deleted tenant it ends all
// payments. Either id may be empty: the service's note on a customer decides whose it is. It does nothing without a
// provider.
//
// It is idempotent and safe to run concurrently, because it reads again after each change. It records a subscription
// at an unknown price without changing the plan, and returns an error for the operator.
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
	return fmt.Errorf("the subscription of the tenant %s keeps changing", tenantID)
}

// ownerOf returns the tenant noted on a customer, or the given tenant if the customer is unknown or has no note.
func (b *Billing) ownerOf(ctx context.Context, tenantID, customerID string) (string, error) {
	if customerID == "" {
		return tenantID, nil
	}
	if tenantID != "" {
		tenant, err := writer.ReadTenant(ctx, b.Writer, tenantID)
		if err != nil || tenant.Subscription.CustomerID == customerID {
			return tenantID, err
		}
	}
	found, err := b.Payments.Customer(ctx, customerID)
	if commands.KindOf(err) == commands.NotFound {
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
	tenant, err := writer.ReadTenant(ctx, b.Writer, tenantID)
	if err != nil || tenant.ID == "" { // another service's with the same account at the provider
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
	// A page that is still open would sell a second subscription.
	if current != nil && current.ID != noted.ID && current.Status.Manageable() {
		if err := b.Payments.CloseCheckouts(ctx, current.CustomerID, true); err != nil {
			return false, err
		}
	}
	_, done, err := writer.Do(ctx, b.Writer, writer.BySystem("payment provider"), cmd)
	if err != nil || done.Position != (events.Position{}) {
		return true, err
	}
	if current != nil && current.Status.Manageable() {
		if _, _, known := b.Prices.planItem(*current); !known {
			err = fmt.Errorf("the subscription %s has a price that STRIPE_PRICES does not name", current.ID)
		}
	}
	return false, err
}

// endPayments ends all payments for a deleted tenant. It also cancels what was bought during the deletion, and logs a
// warning: refunds are up to the operator.
func (b *Billing) endPayments(ctx context.Context, tenant state.Tenant, customerID string) error {
	// Close the pages first: what is paid before that is listed afterwards.
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

// changeToNote returns the command that records the provider's state, or nil if nothing changed. It removes a deleted
// customer.
func (b *Billing) changeToNote(
	ctx context.Context, tenant state.Tenant, current *PaymentSubscription,
) (commands.Command[state.Tenant], error) {
	noted := tenant.Subscription.CustomerID
	if current == nil {
		gone, err := b.customerDeleted(ctx, noted)
		if err != nil || !gone {
			return nil, err
		}
		return commands.NoteCustomer{TenantRef: commands.TenantRef{TenantID: tenant.ID}, Replaces: noted}, nil
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

// customerDeleted reports whether a customer was deleted at the provider, or is unknown.
func (b *Billing) customerDeleted(ctx context.Context, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	found, err := b.Payments.Customer(ctx, id)
	if commands.KindOf(err) == commands.NotFound {
		return true, nil
	}
	return err == nil && found.Deleted, err
}

// customersOf returns a tenant's recorded customer and another customer of the tenant, if any.
func customersOf(noted events.Subscription, customerID string) []string {
	list := slices.Compact([]string{noted.CustomerID, customerID})
	return slices.DeleteFunc(list, func(id string) bool { return id == "" })
}

// subscriptionsOf lists the customers' subscriptions to plans.
func (b *Billing) subscriptionsOf(
	ctx context.Context, noted events.Subscription, customerID string,
) (list []PaymentSubscription, err error) {
	for _, id := range customersOf(noted, customerID) {
		found, err := b.Payments.Subscriptions(ctx, id)
		// A deleted customer may not be found, but its subscriptions are.
		if err != nil && commands.KindOf(err) != commands.NotFound {
			return nil, err
		}
		list = append(list, found...)
	}
	return b.onlyPlans(list, noted.ID), nil
}

// current returns the subscription that counts: a manageable one, preferably the recorded one, otherwise the recorded
// one, which has ended. It is nil if the provider has none of the tenant's.
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
	// An unlisted subscription may still be active: the settings may name a different account.
	found, err := b.Payments.Subscription(ctx, noted.ID)
	return &found, err
}

// setSubscription returns the command that records a subscription of the provider. A subscription at an unknown price
// does not change the plan.
func (b *Billing) setSubscription(tenant state.Tenant, s PaymentSubscription) commands.SetSubscription {
	item, plan, known := b.Prices.planItem(s)
	if !known {
		plan = tenant.Subscription.Plan
		if s.ID != tenant.Subscription.ID { // its plan may be over
			plan = tenant.Subscription.PlanAt(b.Now(), tenant.Sandbox)
		}
	}
	return commands.SetSubscription{
		TenantRef: commands.TenantRef{TenantID: tenant.ID}, Now: b.Now(),
		Subscription: events.Subscription{
			ID: s.ID, CustomerID: s.CustomerID, Plan: plan, Status: s.Status, BillingCycle: item.BillingCycle,
			PeriodStart: s.PeriodStart, PeriodEnd: s.PeriodEnd, CancelAtPeriodEnd: s.CancelAtPeriodEnd,
		},
	}
}
