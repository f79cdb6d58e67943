package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"flagledger/commands"
	"flagledger/commands/keep"
)

// Payments has the subscriptions of tenants follow the payment provider. It owns the table payment_events.
type Payments struct {
	client *Client
	now    func() time.Time
}

// NewPayments returns the payments that are followed as jobs of a client.
func NewPayments(c *Client, now func() time.Time) *Payments { return &Payments{c, now} }

// Follower makes a tenant's subscription what the payment provider says: commands.Billing.
type Follower interface {
	// Follow may have an empty tenant or an empty customer. It may be repeated.
	Follow(ctx context.Context, tenantID, customerID string) error
}

const (
	paymentQueue   = "payments"
	paymentWorkers = 2
	// paymentAttempts take some eleven hours. What they have not done is done by the next comparison.
	paymentAttempts = 12
	// eventsKept is longer than the provider goes on sending an event.
	eventsKept         = 7 * 24 * time.Hour
	comparisonPriority = 4 // after the events
)

// FollowPayments makes the subscription of a tenant, or of the tenant of a customer, what the payment provider says.
type FollowPayments struct {
	Cause      string `json:"cause" river:"unique"` // the id of an event, or that of a comparison
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

// Enqueue implements the Events of commands.Billing. Its errors are *commands.Error, Unavailable while the database
// cannot be reached.
func (p *Payments) Enqueue(ctx context.Context, e commands.PaymentEvent) error {
	return paymentError(pgx.BeginFunc(ctx, p.client.pool, func(tx pgx.Tx) error {
		added, err := tx.Exec(ctx,
			`insert into keep.payment_events (id, received_at) values ($1, $2) on conflict (id) do nothing`, e.ID, p.now())
		if err != nil || added.RowsAffected() == 0 {
			return err
		}
		return p.client.Add(ctx, tx, FollowPayments{Cause: e.ID, TenantID: e.TenantID, CustomerID: e.CustomerID})
	}))
}

// Compare has the subscriptions of tenants compared with what the payment provider has, each once for a cause.
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

// RemoveOld forgets the events that were taken in a week ago or earlier.
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
