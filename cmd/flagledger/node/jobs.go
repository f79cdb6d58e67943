package node

import (
	"context"
	"fmt"
	"time"

	"flagledger/commands"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
)

// upkeep is what one node does at regular times for all.
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
		{Name: "add up the evaluations of past months", Every: 6 * time.Hour, Do: p.skipOnClockSkew(p.meter.AddUpMonths)},
		{Name: "add up the use of flags by day", Every: time.Hour, Do: p.skipOnClockSkew(p.meter.AddUpDays)},
		{Name: "remove the use of flags that are gone", Every: time.Hour, Do: p.removeGone},
		{Name: "remove the uses of tenants that are gone", Every: time.Hour, Do: p.removeUses},
		{Name: "end sandboxes", Every: time.Hour, Do: retention.Run}, // a name that is stored, and stays
		{Name: "compare subscriptions", Every: 24 * time.Hour, Do: p.compareSubscriptions},
	}
}

// maxUpkeepSkew is how far this node's clock may be from the database's to tell which days and months are over, and
// what is old enough to remove.
const maxUpkeepSkew = 10 * time.Minute

// skipOnClockSkew leaves a task to another node, or to later, where the clock of this one is wrong: a day or month that
// is not over would be closed, or all days be too old.
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

// removeGone removes nothing where this node lags behind: what it does not know may have been made meanwhile.
func (p *parts) removeGone(ctx context.Context) error {
	if err := p.awaitHead(ctx); err != nil {
		return err
	}
	return p.meter.RemoveGone(ctx, p.snapshot)
}

// removeUses removes when people used tenants that are gone, likewise.
func (p *parts) removeUses(ctx context.Context) error {
	if err := p.awaitHead(ctx); err != nil || !p.snapshot.Complete() {
		return err
	}
	return p.directory.RemoveUses(ctx, func(tenantID string) bool {
		_, exists := p.snapshot.Tenant(tenantID)
		return exists
	})
}

// awaitHead waits until this node knows all that has been recorded.
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

// compareSubscriptions has the subscription of each customer compared with what the payment provider has, in a job of
// its own.
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
