package node

import (
	"context"
	"fmt"
	"time"

	"flagledger/commands"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
)

// upkeep returns the periodic tasks that one node does for all.
func (p *parts) upkeep() []jobs.Task {
	mailLimit, dailyInvitations := jobs.NewMailLimit(p.pool), jobs.NewDailyInvitations(p.pool)
	retention := &commands.SandboxRetention{
		Writer: p.writer, Sandboxes: p.snapshot, Notices: jobs.NewSandboxNotices(p.jobs), Notifications: p.notifications,
		Tenancies: p.tenancies, Now: p.Now,
	}
	return []jobs.Task{
		{Name: "remove old Idempotency-Keys", Every: 10 * time.Minute, Do: p.requests.RemoveOld},
		{
			Name:  "remove expired tokens",
			Every: 10 * time.Minute,
			Do:    func(ctx context.Context) error { return local.RemoveExpired(ctx, p.pool, p.Now()) },
		},
		{
			Name:  "remove old requests for links",
			Every: 10 * time.Minute,
			Do:    func(ctx context.Context) error { return p.links.RemoveOld(ctx, p.Now()) },
		},
		{
			Name:  "remove old places of invitations",
			Every: 10 * time.Minute,
			Do:    func(ctx context.Context) error { return mailLimit.RemoveOld(ctx, p.Now()) },
		},
		{
			Name:  "remove old counts of invitations",
			Every: 6 * time.Hour,
			Do:    func(ctx context.Context) error { return dailyInvitations.RemoveOld(ctx, p.Now()) },
		},
		{Name: "remove old events of payments", Every: 6 * time.Hour, Do: p.payments.RemoveOld},
		{Name: "remove old notifications", Every: time.Hour, Do: p.inbox.RemoveOld},
		{Name: "add up the evaluations of past months", Every: 6 * time.Hour, Do: p.skipOnClockSkew(p.meter.SumMonths)},
		{Name: "add up the use of flags by day", Every: time.Hour, Do: p.skipOnClockSkew(p.meter.SumDays)},
		{Name: "remove the use of flags that are gone", Every: time.Hour, Do: p.removeGone},
		{Name: "remove visits of deleted tenants", Every: time.Hour, Do: p.removeVisits},
		{Name: "end sandboxes", Every: time.Hour, Do: retention.Run}, // a stored name that never changes
		{Name: "compare subscriptions", Every: 24 * time.Hour, Do: p.compareSubscriptions},
	}
}

// maxUpkeepSkew limits the difference between this node's clock and the database's for tasks that end days and months,
// and delete old data.
const maxUpkeepSkew = 10 * time.Minute

// skipOnClockSkew skips a task if this node's clock is wrong: it might close a day or month early, or delete too much.
// Another node does it, or a later run.
func (p *parts) skipOnClockSkew(do func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		skew, err := clockSkew(ctx, p.pool, time.Now)
		if err == nil && skew.Abs() > maxUpkeepSkew {
			err = fmt.Errorf("the clock of this node and the database's are %v apart", skew.Abs().Round(time.Second))
		}
		if err != nil {
			return err
		}
		return do(ctx)
	}
}

// removeGone skips if this node lags behind: unknown things may be new.
func (p *parts) removeGone(ctx context.Context) error {
	if err := p.awaitHead(ctx); err != nil {
		return err
	}
	return p.meter.RemoveGone(ctx, p.snapshot)
}

// removeVisits removes the visits of deleted tenants. It skips if this node lags behind.
func (p *parts) removeVisits(ctx context.Context) error {
	if err := p.awaitHead(ctx); err != nil || !p.snapshot.Complete() {
		return err
	}
	return p.directory.RemoveVisits(ctx, func(tenantID string) bool {
		_, exists := p.snapshot.Tenant(tenantID)
		return exists
	})
}

// awaitHead waits until the snapshot holds everything recorded so far.
func (p *parts) awaitHead(ctx context.Context) error {
	head, err := p.store.Head(ctx)
	if err != nil {
		return err
	}
	if !p.progress.Wait(ctx, head, nil) {
		return fmt.Errorf("the snapshot has not come to position %s yet", head)
	}
	return nil
}

// compareSubscriptions queues a comparison of each customer's subscription with the payment provider.
func (p *parts) compareSubscriptions(ctx context.Context) error {
	if !p.billing.Configured() {
		return nil
	}
	tenants, err := p.queries.Customers(ctx)
	if err != nil {
		return err
	}
	return p.payments.Compare(ctx, "comparison "+p.Now().UTC().Format(time.DateOnly), tenants)
}
