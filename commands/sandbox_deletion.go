package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flagledger/events"
)

// SandboxKeptAfterEnd is how long a sandbox that has ended is kept before it is deleted.
const SandboxKeptAfterEnd = 30 * 24 * time.Hour

// SandboxDeletion deletes the sandboxes that ended long ago. Their admins are told before they end and before they are deleted.
type SandboxDeletion struct {
	Writer *Writer
	// Sandboxes lists the sandboxes that end, with their ends. It may miss one that was created just now.
	Sandboxes interface {
		Sandboxes() map[string]time.Time
	}
	Notices       SandboxNotices
	Notifications *Notifications
	Tenancies     *Tenancies
	Now           func() time.Time
}

// maxSettled is how many notices one run settles. The next one goes on.
const maxSettled = 500

// Run does what is due, and may be repeated: where one sandbox fails, the others are done all the same. No sandbox is deleted unless its admins were told
// three days before, however late that was.
func (e *SandboxDeletion) Run(ctx context.Context) error {
	given, err := e.Notices.Given(ctx)
	if err != nil {
		return err
	}
	now := e.Now().UTC()
	var failed []error
	note := func(tenantID string, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("sandbox %s: %w", tenantID, err))
		}
	}
	ends := e.Sandboxes.Sandboxes()
	told, settled := map[SandboxNoticeGiven]bool{}, 0
	for _, n := range given {
		told[SandboxNoticeGiven{TenantID: n.TenantID, Notice: n.Notice, EndsAt: n.EndsAt.UTC()}] = true
		// The tenants of all other notices need not be read.
		if (n.deletionDue(now) || !ends[n.TenantID].Equal(n.EndsAt)) && settled < maxSettled {
			settled++
			note(n.TenantID, e.settle(ctx, n, now))
		}
	}
	for tenantID, end := range ends {
		n := SandboxNoticeGiven{TenantID: tenantID, Notice: noticeDue(end, now), EndsAt: end.UTC()}
		if n.Notice != "" && !told[n] {
			n.GivenAt = now
			note(tenantID, e.tell(ctx, n))
		}
	}
	return errors.Join(failed...)
}

// settle deletes a sandbox whose admins have been told so, and drops what is kept of one that is deleted. Of one that ends at another time now, or not
// at all, it drops the notice.
func (e *SandboxDeletion) settle(ctx context.Context, n SandboxNoticeGiven, now time.Time) error {
	var tenant Tenant
	var err error
	if n.deletionDue(now) {
		tenant, _, err = Do(ctx, e.Writer, ByService(), DeleteEndedSandbox{TenantRef: TenantRef{n.TenantID}, EndsAt: n.EndsAt, Now: now})
	} else {
		tenant, err = ReadTenant(ctx, e.Writer, n.TenantID)
	}
	if err != nil {
		return err
	}
	if tenant.Exists {
		if tenant.Subscription.SandboxEnd(tenant.SandboxEndsAt).Equal(n.EndsAt) {
			return nil
		}
		return e.Notices.Drop(ctx, n)
	}
	if err := e.Tenancies.Forget(ctx, n.TenantID); err != nil {
		return err
	}
	return e.Notices.Forget(ctx, n.TenantID)
}

// tell notifies the admins of a sandbox and has the notice mailed to them. The notifications come first: repeated, they change nothing.
func (e *SandboxDeletion) tell(ctx context.Context, n SandboxNoticeGiven) error {
	tenant, err := ReadTenant(ctx, e.Writer, n.TenantID)
	if err != nil || !tenant.Exists {
		return err
	}
	if err := e.Notifications.TellSandboxNotice(ctx, tenant, n); err != nil {
		return err
	}
	return e.Notices.Give(ctx, n, tenant.Admins())
}

// DeleteEndedSandbox deletes a sandbox that ended at a time SandboxKeptAfterEnd ago or earlier. Any other tenant stays as it is.
type DeleteEndedSandbox struct {
	TenantRef
	EndsAt time.Time
	Now    time.Time
}

func (c DeleteEndedSandbox) decide(t Tenant) ([]events.Fact, error) {
	end := t.Subscription.SandboxEnd(t.SandboxEndsAt)
	if !t.Exists || end.IsZero() || !end.Equal(c.EndsAt) || c.Now.Before(end.Add(SandboxKeptAfterEnd)) {
		return nil, nil
	}
	return []events.Fact{events.TenantDeleted{}}, nil
}
