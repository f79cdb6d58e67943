package main

import (
	"context"
	"log/slog"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
)

// withDatabase joins the database while use runs.
func withDatabase(ctx context.Context, use func(c settings.Config, databaseURL string, log *slog.Logger) error) error {
	c, err := settings.Load()
	if err != nil {
		return err
	}
	log := c.Logger()
	url, stop, err := node.JoinDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer stop()
	return use(c, url, log)
}

// withStore opens the event store while use runs, beside a running server or alone.
func withStore(
	ctx context.Context, use func(c settings.Config, databaseURL string, store events.Store, log *slog.Logger) error,
) error {
	return withDatabase(ctx, func(c settings.Config, databaseURL string, log *slog.Logger) error {
		store, closeStore, err := node.OpenStore(ctx, c, databaseURL, log)
		if err != nil {
			return err
		}
		defer closeStore()
		return use(c, databaseURL, store, log)
	})
}
