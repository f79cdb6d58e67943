package projections

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/migrations/database"
)

const connectTimeout = 2 * time.Second

// Names of connections in Postgres.
const (
	ReaderName    = "flagledger" // connections that answer requests
	projectorName = "flagledger projector"
	builderName   = "flagledger rebuild"
)

// connections is the small pool that projections share for their transactions.
type connections struct{ pool *pgxpool.Pool }

// openConnections returns a lazy pool. Commits do not wait for the disk: a crash of Postgres loses rows together with
// their checkpoint.
func openConnections(url, name string, size int32) (*connections, error) {
	settings := map[string]string{
		"synchronous_commit": "off",
		"lock_timeout":       "5s", // a locked table of one read model must not block the others
		"plan_cache_mode":    "force_generic_plan",
	}
	// Rows are found by their keys. A plan made for an empty table would scan it forever.
	for _, plan := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_material"} {
		settings[plan] = "off"
	}
	SetKeepalive(settings)
	config, err := database.PoolConfig(url, settings)
	if err != nil {
		return nil, err
	}
	config.MinConns, config.MaxConns = 0, size
	config.ConnConfig.ConnectTimeout = connectTimeout
	config.ConnConfig.RuntimeParams["application_name"] = name
	config.AfterConnect = compressFast
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	return &connections{pool}, nil
}

// compressFast sets LZ4 for large values if the server supports it. The default takes four times as long and delays
// later events.
func compressFast(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(
		ctx,
		`select set_config(name, 'lz4', false) from pg_settings where name = 'default_toast_compression'
			and 'lz4' = any (enumvals)`,
	)
	return err
}

const schemaKey = "flagledger schema"

// acquire waits for a connection whose search path is a schema. The caller must release it.
func (c *connections) acquire(ctx context.Context, schema string) (*pgxpool.Conn, error) {
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if data := conn.Conn().PgConn().CustomData(); data[schemaKey] != schema {
		if _, err := conn.Exec(ctx, `select set_config('search_path', $1, false)`, schema); err != nil {
			conn.Release()
			return nil, err
		}
		data[schemaKey] = schema
	}
	return conn, nil
}

// use calls run with a connection whose search path is a schema.
func (c *connections) use(ctx context.Context, schema string, run func(*pgx.Conn) error) error {
	conn, err := c.acquire(ctx, schema)
	if err != nil {
		return err
	}
	defer conn.Release()
	return run(conn.Conn())
}

// SetKeepalive makes the server close the connection, and free its locks, some 20 s after the process is unreachable.
// By default a server waits for hours for a process that lost power or the network.
func SetKeepalive(settings map[string]string) {
	settings["tcp_keepalives_idle"] = "5"
	settings["tcp_keepalives_interval"] = "5"
	settings["tcp_keepalives_count"] = "3"
	settings["tcp_user_timeout"] = "20000"
}
