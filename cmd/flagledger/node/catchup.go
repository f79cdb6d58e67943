package node

import (
	"context"
	"log/slog"
	"time"

	"flagledger/commands/jobs"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/projections/reactions"
)

// CatchUp creates the jobs for all facts in a store, if the database's servers have followed that store before. It
// returns an error if a server runs.
func CatchUp(ctx context.Context, databaseURL string, store events.Store, log *slog.Logger) error {
	return withReactions(ctx, databaseURL, store, log, func(r *reactions.Reactions) error {
		if err := r.CheckNoServer(ctx); err != nil {
			return err
		}
		return r.CatchUp(ctx)
	})
}

// BeforeImport makes facts that are about to be imported cause no jobs, unless they belong to the log with this id
// that jobs have followed. It returns an error if a server runs.
func BeforeImport(ctx context.Context, databaseURL string, store events.Store, logID string, log *slog.Logger) error {
	return withReactions(ctx, databaseURL, store, log,
		func(r *reactions.Reactions) error { return r.BeforeImport(ctx, logID) })
}

func withReactions(
	ctx context.Context, databaseURL string, store events.Store, log *slog.Logger, use func(*reactions.Reactions) error,
) error {
	pool, err := OpenPool(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	queue, err := jobs.Open(pool)
	if err != nil {
		return err
	}
	w := writer.NewWriter(store, writer.NoWait, writer.NoQuotas{}, time.Now)
	return use(reactions.New(reactions.NewCheckpoint(pool, store, log), queue,
		func(ctx context.Context, id string) (bool, error) { return writer.ProjectExists(ctx, w, id) }))
}
