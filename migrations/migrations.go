// Package migrations holds the schema of the facts and the keepings, as SQL files, and applies it, along with River's
// schema of the jobs. Read models are not part of it: their projections create them.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"flagledger/migrations/database"
)

//go:embed *.sql
var files embed.FS

// OldestPostgres is the oldest supported version of Postgres.
const OldestPostgres = 14

// Apply brings the database to the newest schema. Several may call it at once; one at a time works.
func Apply(ctx context.Context, url string, log *slog.Logger) error {
	config, err := database.Config(url, nil)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	if err := apply(ctx, db, log); err != nil {
		return err
	}
	return applyJobs(ctx, url, log)
}

func apply(ctx context.Context, db *sql.DB, log *slog.Logger) error {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithAllowOutofOrder(true), // numbers are given out before all of them are in use
		goose.WithSessionLocker(locker), goose.WithTableName("flagledger_migrations"), goose.WithSlog(log))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, r := range results {
		log.Info("migrated", "file", r.Source.Path, "took", r.Duration)
	}
	return nil
}
