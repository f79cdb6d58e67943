package main

import (
	"context"
	"log/slog"
)

type migrateCommand struct{}

// Run brings the database to the newest schema.
func (migrateCommand) Run(ctx context.Context) error {
	return withDatabase(ctx, func(_ config, databaseURL string, log *slog.Logger) error {
		return prepare(ctx, databaseURL, log)
	})
}
