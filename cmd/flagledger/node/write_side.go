package node

import (
	"context"
	"fmt"
	"log/slog"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/events"
	"flagledger/projections/reactions"
)

// writeSide is what decides and acts: commands, their use cases, and what reacts to facts.
type writeSide struct {
	writer        *commands.Writer
	reactions     *reactions.Reactions
	identity      provider
	runIdentity   func(context.Context)
	mailer        commands.Mailer
	pusher        commands.Pusher
	notifications *commands.Notifications
	tenancies     *commands.Tenancies
	sandboxes     *commands.Sandboxes
	billing       *commands.Billing
}

func newWriteSide(
	ctx context.Context, c settings.Config, s stores, r readSide, log *slog.Logger,
) (w writeSide, err error) {
	checkpoint := reactions.NewCheckpoint(s.pool, s.events, log)
	writer := commands.NewWriter(jobsReadyStore{s.events, checkpoint.Begin}, r.progress.Wait, r.quotas, c.Now)
	mailer, err := openMailer(c, log)
	if err != nil {
		return w, err
	}
	pusher, err := openPusher(ctx, c, log)
	if err != nil {
		return w, err
	}
	eraser := newEraser(writer, s.pool, s.links, s.directory, s.inbox, r.queries, nil)
	identity, runIdentity, err := openIdentity(ctx, c, s, mailer, writer.SessionsEnded, eraser.Erase, log)
	if err != nil {
		return w, err
	}
	billing, err := openBilling(c, writer, s.payments, log)
	if err != nil {
		return w, err
	}
	return writeSide{
		writer: writer,
		reactions: reactions.New(checkpoint, s.jobs, func(ctx context.Context, projectID string) (bool, error) {
			return commands.ProjectExists(ctx, writer, projectID)
		}),
		identity:      identity,
		runIdentity:   runIdentity,
		mailer:        mailer,
		pusher:        pusher,
		notifications: &commands.Notifications{Writer: writer, Inbox: s.inbox, Visits: s.directory},
		tenancies: &commands.Tenancies{
			Directory: s.directory, Keepings: []commands.TenantData{s.directory, s.tours, s.inbox}, Uses: r.meter,
		},
		sandboxes: &commands.Sandboxes{
			Writer:    writer,
			Directory: s.directory,
			Contents:  r.queries,
			Meter:     r.meter,
			Jobs:      jobs.NewSandboxes(s.jobs),
			People:    r.snapshot,
			Active:    c.SandboxFor,
			Now:       c.Now,
			Log:       log,
		},
		billing: billing,
	}, nil
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
