package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flagledger/events"
	"flagledger/events/state"
)

// SandboxKeptAfterEnd is the time between a sandbox's end and its deletion.
const SandboxKeptAfterEnd = 30 * 24 * time.Hour

// SandboxRetention notifies the admins of sandboxes before they end and before they are deleted, and deletes those
// that ended long ago. SandboxGuard ends them.
type SandboxRetention struct {
	Writer *Writer
	// Sandboxes lists the ends of all sandboxes. It may miss the latest.
	Sandboxes interface {
		SandboxEnds() map[string]time.Time
	}
	Notices       SandboxNotices
	Notifications *Notifications
	Tenancies     *Tenancies
	Now           func() time.Time
}

// maxSettled limits the notices that one run settles. The next run continues.
const maxSettled = 500

// Run does what is due, and is idempotent. If one sandbox fails, it continues with the others. It deletes a sandbox
// only three days after its admins were notified, however late that was.
func (s *SandboxRetention) Run(ctx context.Context) error {
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
	given, settled := map[SandboxNoticeGiven]bool{}, 0
	for _, n := range notices {
		given[SandboxNoticeGiven{TenantID: n.TenantID, Notice: n.Notice, EndsAt: n.EndsAt.UTC()}] = true
		// Other notices' tenants need not be read.
		if (n.deletionDue(now) || !ends[n.TenantID].Equal(n.EndsAt)) && settled < maxSettled {
			settled++
			note(n.TenantID, s.settle(ctx, n, now))
		}
	}
	for tenantID, end := range ends {
		n := SandboxNoticeGiven{TenantID: tenantID, Notice: noticeDue(end, now), EndsAt: end.UTC()}
		if n.Notice != "" && !given[n] {
			n.GivenAt = now
			note(tenantID, s.give(ctx, n))
		}
	}
	return errors.Join(failed...)
}

// settle deletes a sandbox and its data if the admins were notified long enough ago. It drops the notice if the
// sandbox's end has changed.
func (s *SandboxRetention) settle(ctx context.Context, n SandboxNoticeGiven, now time.Time) error {
	var tenant state.Tenant
	var err error
	if n.deletionDue(now) {
		tenant, _, err = Do(ctx, s.Writer, ByService(),
			DeleteEndedSandbox{TenantRef: TenantRef{n.TenantID}, EndsAt: n.EndsAt, Now: now})
	} else {
		tenant, err = ReadTenant(ctx, s.Writer, n.TenantID)
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
func (s *SandboxRetention) give(ctx context.Context, n SandboxNoticeGiven) error {
	tenant, err := ReadTenant(ctx, s.Writer, n.TenantID)
	if err != nil || !tenant.Exists {
		return err
	}
	if err := s.Notifications.GiveSandboxNotice(ctx, tenant, n); err != nil {
		return err
	}
	return s.Notices.Give(ctx, n, Admins(&tenant))
}

// DeleteEndedSandbox deletes a sandbox that ended at least SandboxKeptAfterEnd ago. It leaves other tenants alone.
type DeleteEndedSandbox struct {
	TenantRef
	EndsAt time.Time
	Now    time.Time
}

func (c DeleteEndedSandbox) decide(t state.Tenant) ([]events.Fact, error) {
	end := t.Subscription.SandboxEnd(t.SandboxEndsAt)
	if !t.Exists || end.IsZero() || !end.Equal(c.EndsAt) || c.Now.Before(end.Add(SandboxKeptAfterEnd)) {
		return nil, nil
	}
	return []events.Fact{events.TenantDeleted{}}, nil
}
