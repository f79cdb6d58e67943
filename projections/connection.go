package projections

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/migrations/database"
)

const connectTimeout = 2 * time.Second

// Names of connections, as Postgres shows them.
const (
	ReaderName    = "flagledger" // of those with which servers answer requests
	projectorName = "flagledger projector"
	builderName   = "flagledger rebuild"
)

// connections is the few connections that projections share for their transactions.
type connections struct{ pool *pgxpool.Pool }

// openConnections returns a pool of connections, which are opened when they are used. Their commits do not wait for the
// disk: what a crash of Postgres undoes, it undoes together with the checkpoint.
func openConnections(url, name string, size int32) (*connections, error) {
	settings := map[string]string{
		"synchronous_commit": "off",
		"lock_timeout":       "5s", // a lock on a table of one read model must not keep the connections from the others
		"plan_cache_mode":    "force_generic_plan",
	}
	// Rows are found by their keys. A plan that was made while a table was empty must not go through all of it for ever.
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

// compressFast makes a connection compress large values with LZ4, where the server can: the default takes four times as
// long, and later events wait for it.
func compressFast(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(
		ctx,
		`select set_config(name, 'lz4', false) from pg_settings where name = 'default_toast_compression'
			and 'lz4' = any (enumvals)`,
	)
	return err
}

const schemaKey = "flagledger schema"

// acquire waits for a connection on which unqualified names are those of a schema. It must be released.
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

// use runs something on a connection to a schema.
func (c *connections) use(ctx context.Context, schema string, run func(*pgx.Conn) error) error {
	conn, err := c.acquire(ctx, schema)
	if err != nil {
		return err
	}
	defer conn.Release()
	return run(conn.Conn())
}

// SetKeepalive adds settings of a connection: the server ends it, and frees its locks, when it has heard nothing of its
// process for some 20 s. A process that loses power or the network closes no connection, and by default the server
// would wait for hours.
func SetKeepalive(settings map[string]string) {
	settings["tcp_keepalives_idle"] = "5"
	settings["tcp_keepalives_interval"] = "5"
	settings["tcp_keepalives_count"] = "3"
	settings["tcp_user_timeout"] = "20000"
}
