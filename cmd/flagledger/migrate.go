package main

import (
	"context"
	"log/slog"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
)

type migrateCommand struct{}

// Run migrates the database to the current schema.
func (migrateCommand) Run(ctx context.Context) error {
	return withDatabase(ctx, func(_ settings.Config, databaseURL string, log *slog.Logger) error {
		return node.Migrate(ctx, databaseURL, log)
	})
}
