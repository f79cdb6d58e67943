package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/cmd/flagledger/node/health"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
	"flagledger/events/postgres"
	"flagledger/migrations"
	"flagledger/migrations/database"
	"flagledger/migrations/embedded"
	"flagledger/projections"
)

// OpenDatabase finds the configured database, or starts the private one, and migrates it to the current schema. stop
// ends what it started.
func OpenDatabase(ctx context.Context, c settings.Config, log *slog.Logger) (url string, stop func(), err error) {
	url, stop = c.DatabaseURL, func() {}
	if url == "" {
		private, err := embedded.Start(ctx, embedded.Options{Dir: c.Data, Log: log})
		if err != nil {
			return "", nil, err
		}
		url, stop = private.URL(), func() {
			if err := private.Stop(); err != nil {
				log.Error("stopping Postgres", "err", err)
			}
		}
	}
	if err := Migrate(ctx, url, log); err != nil {
		stop()
		if c.DatabaseURL != "" {
			err = fmt.Errorf("FLAGLEDGER_DATABASE_URL: %w", err)
		}
		return "", nil, err
	}
	return url, stop, nil
}

// JoinDatabase works like OpenDatabase for commands beside a running server: it uses that server's private database if
// there is one.
func JoinDatabase(ctx context.Context, c settings.Config, log *slog.Logger) (url string, stop func(), err error) {
	if c.DatabaseURL == "" {
		url, err := embedded.Connect(ctx, c.Data)
		if err == nil {
			return url, func() {}, nil
		}
		if !errors.Is(err, embedded.ErrNotRunning) {
			return "", nil, err
		}
	}
	return OpenDatabase(ctx, c, log)
}

// ErrUnreachable reports that the database cannot be reached or cannot work now.
var ErrUnreachable = errors.New("the database cannot be reached")

// Migrate migrates the database to the current schema, and refuses a Postgres that is too old. It returns
// ErrUnreachable while the database is down.
func Migrate(ctx context.Context, url string, log *slog.Logger) error {
	pool, err := OpenPool(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	var version int
	const askVersion = "select current_setting('server_version_num')::int / 10000"
	if err := pool.QueryRow(ctx, askVersion, pgx.QueryExecModeExec).Scan(&version); err != nil { // any pooler takes this
		return unusable(err)
	}
	if version < migrations.OldestPostgres {
		return fmt.Errorf("the database is Postgres %d; %d or newer is needed", version, migrations.OldestPostgres)
	}
	if err := database.CheckSessions(ctx, pool.Config().ConnConfig); err != nil {
		return unusable(err)
	}
	if readOnly, err := database.ServerIsReadOnly(ctx, pool); err != nil {
		return unusable(err)
	} else if readOnly {
		return unusable(database.ErrReadOnly)
	}
	err = migrations.Apply(ctx, url, log)
	if postgres.Unavailable(err) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// unusable returns the error of a start on a database that failed. It is ErrUnreachable if a retry may succeed.
func unusable(err error) error {
	if postgres.Unavailable(err) || database.IsReadOnlyError(err) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return fmt.Errorf("the database cannot be used: %w", err)
}

const (
	connectTimeout        = 2 * time.Second
	commandConnectTimeout = 10 * time.Second // a person waits, and there are no retries
	queryTimeout          = 10 * time.Second
)

// OpenPool opens a pool for reads and keepings of the default size for a node with facts in Postgres.
func OpenPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := poolConfig(url, settings.CommandPool)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.ConnectTimeout = commandConnectTimeout
	return pgxpool.NewWithConfig(ctx, config)
}

// openPool opens the pool of a node. It refuses connections until migrated is closed, and reports errors to disk.
func openPool(
	ctx context.Context, url string, size int32, migrated <-chan struct{}, disk *health.Disk,
) (*pgxpool.Pool, error) {
	config, err := poolConfig(url, size)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.ConnectTimeout = connectTimeout
	config.ConnConfig.Tracer = disk
	config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		select {
		case <-migrated:
			return nil
		default:
			return ErrUnreachable
		}
	}
	return pgxpool.NewWithConfig(ctx, config)
}

func poolConfig(url string, size int32) (*pgxpool.Config, error) {
	parameters := map[string]string{"statement_timeout": queryTimeout.String()}
	projections.SetKeepalive(parameters) // reactions hold their lock on one of them
	config, err := database.PoolConfig(url, parameters)
	if err != nil {
		return nil, errors.New("FLAGLEDGER_DATABASE_URL cannot be read as a Postgres URL")
	}
	config.MaxConns = size
	config.ConnConfig.RuntimeParams["application_name"] = projections.ReaderName
	return config, nil
}

// ListLimits lists the limits of a node's stores.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.RequestLimit("a query of the database", events.PeriodText(queryTimeout), 503, ""),
		events.RequestLimit("an event of the log", events.SizeText(events.MaxEventBytes), 422, ""),
	}
}
