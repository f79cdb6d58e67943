package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"flagledger/cmd/flagledger/node/health"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/commands/sandbox"
	"flagledger/commands/tenants"
)

// work returns the jobs that a node works.
func work(c settings.Config, s stores, r readSide, w writeSide, log *slog.Logger) jobs.Work {
	return jobs.Work{
		Mails: &jobs.Mails{
			Mailer:    w.mailer,
			Links:     w.identity,
			Writer:    w.writer,
			Directory: s.directory,
			PublicURL: c.PublicURL,
			Now:       c.Now,
		},
		Pushes: &jobs.Pushes{
			Pusher:     w.pusher,
			Inbox:      s.inbox,
			People:     r.snapshot,
			Recipients: w.notifications,
		},
		Notifications: w.notifications,
		Sandboxes:     w.sandboxes,
		Tenancies:     w.tenancies,
		Projects:      &tenants.DeletedProjects{Writer: w.writer, Flags: r.snapshot},
		Payments:      w.billing,
		Upkeep:        upkeep(c, s, r, w),
		Log:           log,
		Attempted:     health.CountAttempts(s.metrics),
	}
}

// upkeep returns the periodic tasks that one node does for all.
func upkeep(c settings.Config, s stores, r readSide, w writeSide) []jobs.Task {
	windows := jobs.NewWindows(s.pool)
	retention := &sandbox.Retention{
		Writer: w.writer, Sandboxes: r.snapshot, Notices: jobs.NewSandboxNotices(s.jobs), Notifications: w.notifications,
		Tenancies: w.tenancies, Now: c.Now,
	}
	return []jobs.Task{
		{Name: "remove old Idempotency-Keys", Every: 10 * time.Minute, Do: s.requests.RemoveOld},
		{
			Name:  "remove expired tokens",
			Every: 10 * time.Minute,
			Do:    func(ctx context.Context) error { return local.RemoveExpired(ctx, s.pool, c.Now()) },
		},
		{
			Name:  "remove old requests for links",
			Every: 10 * time.Minute,
			Do:    func(ctx context.Context) error { return s.links.RemoveOld(ctx, c.Now()) },
		},
		{
			Name:  "remove old places of invitations", // of all windows
			Every: 10 * time.Minute,
			Do:    func(ctx context.Context) error { return windows.RemoveOld(ctx, c.Now()) },
		},
		{Name: "remove old events of payments", Every: 6 * time.Hour, Do: s.payments.RemoveOld},
		{Name: "remove old notifications", Every: time.Hour, Do: s.inbox.RemoveOld},
		{Name: "add up the evaluations of past months", Every: 6 * time.Hour, Do: s.skipOnClockSkew(r.meter.SumMonths)},
		{Name: "add up the use of flags by day", Every: time.Hour, Do: s.skipOnClockSkew(r.meter.SumDays)},
		{Name: "remove old reports of usage", Every: time.Hour, Do: r.meter.ForgetReports},
		{
			Name:  "remove the use of flags that are gone",
			Every: time.Hour,
			Do:    onceCurrent(s, r, func(ctx context.Context) error { return r.meter.RemoveGone(ctx, r.snapshot) }),
		},
		{
			Name:  "remove visits of deleted tenants",
			Every: time.Hour,
			Do:    onceCurrent(s, r, func(ctx context.Context) error { return removeVisits(ctx, s, r) }),
		},
		{Name: "end sandboxes", Every: time.Hour, Do: retention.Run}, // a stored name that never changes
		{
			Name:  "compare subscriptions",
			Every: 24 * time.Hour,
			Do:    func(ctx context.Context) error { return compareSubscriptions(ctx, c, s, r, w) },
		},
	}
}

// maxUpkeepSkew limits the difference between this node's clock and the database's for tasks that end days and months,
// and delete old data.
const maxUpkeepSkew = 10 * time.Minute

// skipOnClockSkew skips a task if this node's clock is wrong: it might close a day or month early, or delete too much.
// Another node does it, or a later run.
func (s stores) skipOnClockSkew(do func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		skew, err := health.ClockSkew(ctx, s.pool, time.Now)
		if err == nil && skew.Abs() > maxUpkeepSkew {
			err = fmt.Errorf("the clock of this node and the database's are %v apart", skew.Abs().Round(time.Second))
		}
		if err != nil {
			return err
		}
		return do(ctx)
	}
}

// removeVisits removes the visits of deleted tenants.
func removeVisits(ctx context.Context, s stores, r readSide) error {
	if !r.snapshot.Complete() {
		return nil
	}
	return s.directory.RemoveVisits(ctx, func(tenantID string) bool {
		_, exists := r.snapshot.Tenant(tenantID)
		return exists
	})
}

// onceCurrent runs a task once the snapshot holds everything recorded so far: what it does not know may be new. It
// fails if this node lags behind.
func onceCurrent(s stores, r readSide, do func(ctx context.Context) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		head, err := s.events.Head(ctx)
		if err != nil {
			return err
		}
		if !r.progress.Wait(ctx, head, nil) {
			return fmt.Errorf("the snapshot has not come to position %s yet", head)
		}
		return do(ctx)
	}
}

// compareSubscriptions queues a comparison of each customer's subscription with the payment provider.
func compareSubscriptions(ctx context.Context, c settings.Config, s stores, r readSide, w writeSide) error {
	if !w.billing.Configured() {
		return nil
	}
	tenants, err := r.queries.Customers(ctx)
	if err != nil {
		return err
	}
	return s.payments.Compare(ctx, "comparison "+c.Now().UTC().Format(time.DateOnly), tenants)
}
