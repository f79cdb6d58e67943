package migrations

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"flagledger/migrations/database"
)

// tenantIndex finds the pending jobs of a tenant, by whose number its next ones have their priority. It looks first:
// create index if not exists would wait for all that write jobs at each start.
const tenantIndex = `do $$ begin
	if to_regclass('` + JobsSchema + `.flagledger_tenant') is null then
		create index flagledger_tenant on ` + JobsSchema + `.river_job ((args ->> 'tenantId')) where finalized_at is null;
	end if;
end $$`

// JobsSchema is the schema of River's tables. Only River writes to them.
const JobsSchema = "jobs"

// applyJobs brings River's tables to the newest schema. Several may call it at once; one at a time works.
func applyJobs(ctx context.Context, url string, log *slog.Logger) error {
	config, err := database.PoolConfig(url, nil)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	config.MaxConns = 2 // one holds the lock, the other works
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer pool.Close()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer conn.Release() // the lock ends with the connection, when the pool closes
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtext('flagledger jobs schema'))`); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := conn.Exec(ctx, `create schema if not exists `+JobsSchema); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool),
		&rivermigrate.Config{Schema: JobsSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	result, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return fmt.Errorf("migrate: jobs: %w", err)
	}
	for _, v := range result.Versions {
		log.Info("migrated", "jobs", v.Version, "took", v.Duration)
	}
	if _, err := conn.Exec(ctx, tenantIndex); err != nil {
		return fmt.Errorf("migrate: jobs: %w", err)
	}
	return nil
}
