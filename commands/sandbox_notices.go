package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flagledger/events"
)

// EndOfSandboxes tells people that their sandboxes end, and deletes those that ended long ago.
type EndOfSandboxes struct {
	Writer *Writer
	// Sandboxes lists the sandboxes that end, with their ends. It may miss one that was created just now.
	Sandboxes interface {
		Sandboxes() map[string]time.Time
	}
	Notices interface {
		// Given lists the notices that were given.
		Given(ctx context.Context) ([]SandboxNoticeGiven, error)
		// Give notes a notice, and has it mailed to some people. One that was given before is left as it is.
		Give(ctx context.Context, n SandboxNoticeGiven, userIDs []string) error
		// Drop drops a notice.
		Drop(ctx context.Context, n SandboxNoticeGiven) error
		// Forget drops the notices of a tenant.
		Forget(ctx context.Context, tenantID string) error
	}
	Notifications *Notifications
	Tenancies     *Tenancies
	Now           func() time.Time
}

// maxSettled is how many notices one run settles. The next one goes on.
const maxSettled = 500

// Run does what is due. Where one sandbox fails, the others are done all the same; it may be repeated. No sandbox is deleted unless its admins were told
// three days before, however late that was.
func (e *EndOfSandboxes) Run(ctx context.Context) error {
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
		if (n.due(now) || !ends[n.TenantID].Equal(n.EndsAt)) && settled < maxSettled {
			settled++
			note(n.TenantID, e.settle(ctx, n, now))
		}
	}
	for tenantID, end := range ends {
		n := SandboxNoticeGiven{TenantID: tenantID, EndsAt: end.UTC()}
		switch {
		case !now.Before(end.Add(SandboxTTL - sandboxWarningPeriod)):
			n.Notice = SandboxDeletion
		case !now.Before(end.Add(-sandboxWarningPeriod)) && now.Before(end):
			n.Notice = SandboxEnding
		default:
			continue
		}
		if !told[n] {
			n.GivenAt = now
			note(tenantID, e.tell(ctx, n))
		}
	}
	return errors.Join(failed...)
}

// due reports whether the admins of a sandbox have been told long enough that it is deleted.
func (n SandboxNoticeGiven) due(now time.Time) bool {
	return n.Notice == SandboxDeletion && !now.Before(n.GivenAt.Add(sandboxWarningPeriod))
}

// settle deletes a sandbox whose admins have been told so, and drops what is kept of it. Of one that has been deleted before it drops what is left, and of
// one that ends at another time now, or not at all, the notice.
func (e *EndOfSandboxes) settle(ctx context.Context, n SandboxNoticeGiven, now time.Time) error {
	var tenant Tenant
	var err error
	if n.due(now) {
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
func (e *EndOfSandboxes) tell(ctx context.Context, n SandboxNoticeGiven) error {
	tenant, err := ReadTenant(ctx, e.Writer, n.TenantID)
	if err != nil || !tenant.Exists {
		return err
	}
	if err := e.Notifications.SandboxEnds(ctx, tenant, n); err != nil {
		return err
	}
	var admins []string
	for id, m := range tenant.Members {
		if m.Role == events.AdminRole && !m.Pending {
			admins = append(admins, id)
		}
	}
	return e.Notices.Give(ctx, n, admins)
}
