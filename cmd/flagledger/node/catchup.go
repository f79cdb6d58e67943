package node

import (
	"context"
	"log/slog"

	"flagledger/commands/jobs"
	"flagledger/events"
	"flagledger/projections/reactions"
)

// CatchUp has jobs made from all facts that a store holds, where the servers of a database have made jobs from that
// store before. It returns an error where a server runs.
func CatchUp(ctx context.Context, databaseURL string, store events.Store, log *slog.Logger) error {
	return withReactions(ctx, databaseURL, store, log, func(r *reactions.Reactions) error {
		if err := r.CheckNoServer(ctx); err != nil {
			return err
		}
		return r.CatchUp(ctx)
	})
}

// BeforeImport has no jobs made from the facts that are about to be added to a store, unless they are of the log of the
// given ID and jobs were made from that log. It returns an error where a server runs.
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
	return use(reactions.New(pool, store, queue, log))
}
