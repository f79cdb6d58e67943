package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands/billing"
	"flagledger/commands/jobs"
	"flagledger/commands/notify"
	"flagledger/commands/sandbox"
	"flagledger/commands/tenants"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/projections/reactions"
)

// writeSide is what decides and acts: commands, their use cases, and what reacts to facts.
type writeSide struct {
	writer        *writer.Writer
	reactions     *reactions.Reactions
	identity      provider
	runIdentity   func(context.Context)
	mailer        notify.Mailer
	pusher        notify.Pusher
	notifications *notify.Notifications
	tenancies     *tenants.Tenancies
	sandboxes     *sandbox.Sandboxes
	billing       *billing.Billing
}

func newWriteSide(
	ctx context.Context, c settings.Config, s stores, r readSide, log *slog.Logger,
) (w writeSide, err error) {
	checkpoint := reactions.NewCheckpoint(s.pool, s.events, log)
	w.writer = writer.NewWriter(jobsReadyStore{s.events, checkpoint.Begin}, r.progress.Wait, r.quotas, c.Now)
	w.writer.Timeout = cmp.Or(c.WaitTimeout, w.writer.Timeout)
	if w.mailer, err = openMailer(c, log); err != nil {
		return w, err
	}
	if w.pusher, err = openPusher(ctx, c, log); err != nil {
		return w, err
	}
	eraser := newEraser(w.writer, s.pool, s.links, s.directory, s.inbox, r.queries, nil)
	w.identity, w.runIdentity, err = openIdentity(ctx, c, s, w.mailer, w.writer.SessionsEnded, eraser.Erase, log)
	if err != nil {
		return w, err
	}
	if w.billing, err = openBilling(c, w.writer, s.payments, log); err != nil {
		return w, err
	}
	w.reactions = reactions.New(checkpoint, s.jobs, func(ctx context.Context, projectID string) (bool, error) {
		return writer.ProjectExists(ctx, w.writer, projectID)
	})
	w.notifications = &notify.Notifications{Writer: w.writer, Inbox: s.inbox, Visits: s.directory}
	w.tenancies = &tenants.Tenancies{
		Directory: s.directory, Keepings: []tenants.TenantData{s.directory, s.tours, s.inbox, s.salts}, Uses: r.meter,
	}
	w.sandboxes = &sandbox.Sandboxes{
		Writer:    w.writer,
		Directory: s.directory,
		Contents:  r.queries,
		Meter:     r.meter,
		Jobs:      jobs.NewSandboxes(s.jobs),
		People:    r.snapshot,
		Active:    c.SandboxFor,
		Now:       c.Now,
		Log:       log,
	}
	return w, nil
}

// jobsReadyStore refuses appends before reactions have begun in the log: facts before their first checkpoint cause no
// jobs.
type jobsReadyStore struct {
	events.Store
	begin func(context.Context) error
}

// Append implements events.Store.
func (s jobsReadyStore) Append(
	ctx context.Context, stream string, expected events.Revision, batch []events.Event,
) (events.Appended, error) {
	if err := s.begin(ctx); err != nil {
		return events.Appended{}, fmt.Errorf("%w: reactions cannot begin: %w", events.ErrUnavailable, err)
	}
	return s.Store.Append(ctx, stream, expected, batch)
}
