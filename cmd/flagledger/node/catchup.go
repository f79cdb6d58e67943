package node

import (
	"context"
	"log/slog"

	"flagledger/commands/jobs"
	"flagledger/events"
	"flagledger/projections/reactions"
)

// CatchUp has jobs made from all facts that a store holds, where the servers of a database have made jobs from that store before. It is for when no
// server runs.
func CatchUp(ctx context.Context, databaseURL string, store events.Store, log *slog.Logger) error {
	pool, err := OpenPool(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	queue, err := jobs.Open(pool)
	if err != nil {
		return err
	}
	return reactions.New(pool, store, queue, log).CatchUp(ctx)
}
