// Package database opens connections to Postgres and sets up their sessions. It follows the server that accepts writes
// when that is replaced. It is beside the migrations because event store, projections and keepings need it and may not
// import each other.
package database

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrReadOnly reports that a server accepts no writes.
var ErrReadOnly = errors.New("the database takes no writes: it is a standby, or default_transaction_read_only is on")

// IsReadOnlyError reports whether an error means that a server accepts no writes.
func IsReadOnlyError(err error) bool {
	if errors.Is(err, ErrReadOnly) {
		return true
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	// https://www.postgresql.org/docs/current/errcodes-appendix.html
	return ok && (pg.Code == "25006" || pg.Code == "55000" && strings.Contains(pg.Message, "recovery is in progress"))
}

// Config parses a URL as PoolConfig does, for a connection outside a pool.
func Config(url string, settings map[string]string) (*pgx.ConnConfig, error) {
	config, err := PoolConfig(url, settings)
	if err != nil {
		return nil, err
	}
	return config.ConnConfig, nil
}

// PoolConfig parses a URL. Each connection has the settings of the URL and the given ones, and ends when its server
// refuses a write. If the URL has several hosts, it uses the one that accepts writes.
func PoolConfig(url string, settings map[string]string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	s := session{
		connections: connectionsTo(url),
		settings:    takeSettings(config.ConnConfig),
		writerOnly:  config.ConnConfig.ValidateConnect != nil || severalHosts(config.ConnConfig),
	}
	maps.Copy(s.settings, settings)
	config.ConnConfig.AfterNetConnect = s.connections.add
	config.ConnConfig.ValidateConnect = s.begin
	stays := config.ConnConfig.OnPgError
	config.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		return stays(conn, err) &&
			!IsReadOnlyError(err)
	}
	config.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) { return isOpen(conn.PgConn()), nil }
	return config, nil
}

// startupParameters are sent when a connection is opened. Poolers such as pgbouncer refuse most others.
var startupParameters = []string{"application_name", "client_encoding", "options"}

// takeSettings removes from a URL's parameters those that are set once a connection is open, and returns them.
func takeSettings(config *pgx.ConnConfig) map[string]string {
	settings := map[string]string{}
	for name, value := range config.RuntimeParams {
		if !slices.Contains(startupParameters, name) {
			settings[name] = value
			delete(config.RuntimeParams, name)
		}
	}
	return settings
}

// severalHosts reports whether a URL names several servers. With some values of sslmode, a server is tried twice.
func severalHosts(config *pgx.ConnConfig) bool {
	return slices.ContainsFunc(config.Fallbacks,
		func(f *pgconn.FallbackConfig) bool { return f.Host != config.Host || f.Port != config.Port })
}

// session sets up a new connection of a Config.
type session struct {
	connections *connections
	settings    map[string]string
	writerOnly  bool // refuses a server that accepts no writes
}

const readOnlySQL = "pg_is_in_recovery() or current_setting('transaction_read_only')::bool"

// begin applies the settings of a new connection, and identifies its server.
func (s session) begin(ctx context.Context, conn *pgconn.PgConn) error {
	sql, args := "select "+readOnlySQL+", extract(epoch from pg_postmaster_start_time())::text", [][]byte{}
	for _, name := range slices.Sorted(maps.Keys(s.settings)) {
		args = append(args, []byte(name), []byte(s.settings[name]))
		sql += fmt.Sprintf(", set_config($%d, $%d, false)", len(args)-1, len(args))
	}
	result := conn.ExecParams(ctx, sql, args, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) < 2 {
		return errors.New("the server does not answer as Postgres does")
	}
	row := result.Rows[0]
	readOnly, server := string(row[0]) == "t", string(row[1])
	if readOnly && s.writerOnly || !s.connections.admit(conn.Conn(), server, readOnly) {
		return ErrReadOnly
	}
	return nil
}

// ServerIsReadOnly reports whether a server accepts no writes.
func ServerIsReadOnly(ctx context.Context, pool *pgxpool.Pool) (is bool, err error) {
	err = pool.QueryRow(ctx, "select "+readOnlySQL).Scan(&is)
	return is, err
}

// FindWriter connects again to a pool's database. If the URL now leads to a different server that accepts writes, all
// connections to earlier servers end, also those outside the pool.
func FindWriter(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
