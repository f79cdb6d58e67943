package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"flagledger/commands/billing"
	"flagledger/commands/keep"
)

// Payments queues updates of tenants' subscriptions from the payment provider. It owns the table payment_events.
type Payments struct {
	client *Client
	now    func() time.Time
}

// NewPayments returns payments that are followed as jobs of a client.
func NewPayments(c *Client, now func() time.Time) *Payments { return &Payments{c, now} }

// Follower updates a tenant's subscription from the payment provider: billing.Billing.
type Follower interface {
	// Follow accepts an empty tenant or customer. It is idempotent.
	Follow(ctx context.Context, tenantID, customerID string) error
}

const (
	paymentQueue   = "payments"
	paymentWorkers = 2
	// paymentAttempts take some eleven hours. The next comparison does what they have not.
	paymentAttempts = 12
	// eventsKept is longer than the provider retries an event.
	eventsKept         = 7 * 24 * time.Hour
	comparisonPriority = 4 // after the events
)

// FollowPayments updates the subscription of a tenant, or of a customer's tenant, from the payment provider.
type FollowPayments struct {
	Cause      string `json:"cause" river:"unique"` // the id of an event or of a comparison
	TenantID   string `json:"tenantId,omitempty" river:"unique"`
	CustomerID string `json:"customerId,omitempty"`
}

// Kind implements river.JobArgs.
func (FollowPayments) Kind() string { return "payments.follow" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (FollowPayments) InsertOpts() river.InsertOpts {
	return oncePerCause(paymentQueue, paymentAttempts)
}

func (FollowPayments) tenant() string { return "" }

// Enqueue implements billing.Billing's Events. Errors are *commands.Error, Unavailable if the database cannot be
// reached.
func (p *Payments) Enqueue(ctx context.Context, e billing.PaymentEvent) error {
	return paymentError(pgx.BeginFunc(ctx, p.client.pool, func(tx pgx.Tx) error {
		added, err := tx.Exec(ctx,
			`insert into keep.payment_events (id, received_at) values ($1, $2) on conflict (id) do nothing`, e.ID, p.now())
		if err != nil || added.RowsAffected() == 0 {
			return err
		}
		return p.client.Add(ctx, tx, FollowPayments{Cause: e.ID, TenantID: e.TenantID, CustomerID: e.CustomerID})
	}))
}

// Compare queues a comparison of tenants' subscriptions with the payment provider, once per tenant and cause.
func (p *Payments) Compare(ctx context.Context, cause string, tenants []string) error {
	if len(tenants) == 0 {
		return nil
	}
	list := make([]Job, len(tenants))
	for i, id := range tenants {
		list[i] = FollowPayments{Cause: cause, TenantID: id}
	}
	return paymentError(pgx.BeginFunc(ctx, p.client.pool, func(tx pgx.Tx) error {
		return p.client.insert(ctx, tx, list, func(Job) int { return comparisonPriority })
	}))
}

// RemoveOld deletes events after a week.
func (p *Payments) RemoveOld(ctx context.Context) error {
	_, err := p.client.pool.Exec(ctx, `delete from keep.payment_events where received_at <= $1`, p.now().Add(-eventsKept))
	return paymentError(err)
}

func paymentWorker(f Follower) river.Worker[FollowPayments] {
	return river.WorkFunc(func(ctx context.Context, job *river.Job[FollowPayments]) error {
		return f.Follow(ctx, job.Args.TenantID, job.Args.CustomerID)
	})
}

func paymentError(err error) error {
	return keep.DatabaseError("events of the payment provider cannot be noted at this moment", err)
}
