package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events/postgres"
	"flagledger/migrations"
	"flagledger/migrations/database"
	"flagledger/migrations/embedded"
	"flagledger/projections"
)

// OpenDatabase finds the configured database, or starts the private one, and migrates it to the current schema. stop
// ends what it started.
func OpenDatabase(ctx context.Context, c Config, log *slog.Logger) (url string, stop func(), err error) {
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
func JoinDatabase(ctx context.Context, c Config, log *slog.Logger) (url string, stop func(), err error) {
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

// oldestPostgres is the oldest supported version.
const oldestPostgres = 14

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
	if version < oldestPostgres {
		return fmt.Errorf("the database is Postgres %d; %d or newer is needed", version, oldestPostgres)
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

// Connections to the database that a node needs beside its pool.
const (
	snapshotSubscriptions = 1
	reactionSubscriptions = 1 // on one node
	jobListeners          = 1 // River takes one from the pool for good
	partConnections       = projections.Connections + jobListeners
	// factConnections are needed only if Postgres holds the facts. Statuses and Reactions.Lag share a subscription: the
	// monitor calls one after the other.
	factConnections = postgres.Connections + projections.Subscriptions + snapshotSubscriptions + reactionSubscriptions
)

// Limits of the setting.
const (
	defaultConnections = 16
	minPool            = 2
	maxConnections     = 1000
)

// cliPool is a command's number of connections for reads and keepings.
const cliPool = defaultConnections - partConnections - factConnections

// poolSize returns how many connections the setting leaves for the pool.
func (c Config) poolSize() (int32, error) {
	taken, n := partConnections, defaultConnections
	if c.EventStoreURL == "" {
		taken += factConnections
	}
	if c.Connections != "" {
		var err error
		if n, err = strconv.Atoi(c.Connections); err != nil || n < taken+minPool || n > maxConnections {
			return 0, fmt.Errorf("FLAGLEDGER_DATABASE_CONNECTIONS: it must be a number from %d to %d; it is %q", taken+minPool,
				maxConnections, c.Connections)
		}
	}
	return int32(n - taken), nil
}

const (
	connectTimeout        = 2 * time.Second
	commandConnectTimeout = 10 * time.Second // a person waits, and there are no retries
	queryTimeout          = 10 * time.Second
)

// OpenPool opens a pool for reads and keepings of the default size for a node with facts in Postgres.
func OpenPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := poolConfig(url, cliPool)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.ConnectTimeout = commandConnectTimeout
	return pgxpool.NewWithConfig(ctx, config)
}

// openPool opens the pool of a node. It refuses connections until migrated is closed, and reports errors to disk.
func openPool(
	ctx context.Context, url string, size int32, migrated <-chan struct{}, disk *diskWatch,
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
	settings := map[string]string{"statement_timeout": queryTimeout.String()}
	projections.SetKeepalive(settings) // reactions hold their lock on one of them
	config, err := database.PoolConfig(url, settings)
	if err != nil {
		return nil, errors.New("FLAGLEDGER_DATABASE_URL cannot be read as a Postgres URL")
	}
	config.MaxConns = size
	config.ConnConfig.RuntimeParams["application_name"] = projections.ReaderName
	return config, nil
}
