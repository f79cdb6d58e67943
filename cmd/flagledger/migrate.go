package main

import (
	"context"
	"log/slog"

	"flagledger/cmd/flagledger/node"
)

type migrateCommand struct{}

// Run migrates the database to the current schema.
func (migrateCommand) Run(ctx context.Context) error {
	return withDatabase(ctx, func(_ node.Config, databaseURL string, log *slog.Logger) error {
		return node.Migrate(ctx, databaseURL, log)
	})
}
