package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flagledger/commands"
	"flagledger/commands/notify"
	"flagledger/commands/tenants"
	"flagledger/commands/writer"
	"flagledger/events/state"
)

// Retention notifies the admins of sandboxes before they end and before they are deleted, and deletes those
// that ended long ago. SandboxGuard ends them.
type Retention struct {
	Writer *writer.Writer
	// Sandboxes lists the ends of all sandboxes. It may miss the latest.
	Sandboxes interface {
		SandboxEnds() map[string]time.Time
	}
	Notices       notify.SandboxNotices
	Notifications *notify.Notifications
	Tenancies     *tenants.Tenancies
	Now           func() time.Time
}

// maxSettled limits the notices that one run settles. The next run continues.
const maxSettled = 500

// Run does what is due, and is idempotent. If one sandbox fails, it continues with the others. It deletes a sandbox
// only three days after its admins were notified, however late that was.
func (s *Retention) Run(ctx context.Context) error {
	notices, err := s.Notices.Given(ctx)
	if err != nil {
		return err
	}
	now := s.Now().UTC()
	var failed []error
	note := func(tenantID string, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("sandbox %s: %w", tenantID, err))
		}
	}
	ends := s.Sandboxes.SandboxEnds()
	given, settled := map[notify.SandboxNoticeGiven]bool{}, 0
	for _, n := range notices {
		given[notify.SandboxNoticeGiven{TenantID: n.TenantID, Notice: n.Notice, EndsAt: n.EndsAt.UTC()}] = true
		// Other notices' tenants need not be read.
		if (n.DeletionDue(now) || !ends[n.TenantID].Equal(n.EndsAt)) && settled < maxSettled {
			settled++
			note(n.TenantID, s.settle(ctx, n, now))
		}
	}
	for tenantID, end := range ends {
		n := notify.SandboxNoticeGiven{TenantID: tenantID, Notice: notify.NoticeDue(end, now), EndsAt: end.UTC()}
		if n.Notice != "" && !given[n] {
			n.GivenAt = now
			note(tenantID, s.give(ctx, n))
		}
	}
	return errors.Join(failed...)
}

// settle deletes a sandbox and its data if the admins were notified long enough ago. It drops the notice if the
// sandbox's end has changed.
func (s *Retention) settle(ctx context.Context, n notify.SandboxNoticeGiven, now time.Time) error {
	var tenant state.Tenant
	var err error
	if n.DeletionDue(now) {
		tenant, _, err = writer.Do(ctx, s.Writer, writer.ByService(),
			commands.DeleteEndedSandbox{TenantRef: commands.TenantRef{TenantID: n.TenantID}, EndsAt: n.EndsAt, Now: now})
	} else {
		tenant, err = writer.ReadTenant(ctx, s.Writer, n.TenantID)
	}
	if err != nil {
		return err
	}
	if tenant.Exists {
		if tenant.Subscription.SandboxEnd(tenant.SandboxEndsAt).Equal(n.EndsAt) {
			return nil
		}
		return s.Notices.Drop(ctx, n)
	}
	if err := s.Tenancies.Forget(ctx, n.TenantID); err != nil {
		return err
	}
	return s.Notices.Forget(ctx, n.TenantID)
}

// give notifies the admins of a sandbox and mails them the notice. The notifications come first, because they are
// idempotent.
func (s *Retention) give(ctx context.Context, n notify.SandboxNoticeGiven) error {
	tenant, err := writer.ReadTenant(ctx, s.Writer, n.TenantID)
	if err != nil || !tenant.Exists {
		return err
	}
	if err := s.Notifications.GiveSandboxNotice(ctx, tenant, n); err != nil {
		return err
	}
	return s.Notices.Give(ctx, n, commands.Admins(&tenant))
}
