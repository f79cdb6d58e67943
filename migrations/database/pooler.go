package database

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrPooled reports that a connection has no session of its own.
var ErrPooled = errors.New(
	"a pooler there gives a session to each transaction, but locks and notifications need one for each connection: " +
		"set pool_mode = session in pgbouncer, or name Postgres itself",
)

// CheckSessions returns ErrPooled if a session setting of one connection is lost, or seen by another. Its test setting
// has no effect.
func CheckSessions(ctx context.Context, config *pgx.ConnConfig) error {
	config = config.Copy()
	config.AfterNetConnect, config.ValidateConnect = nil, nil // no settings for others on a shared session
	var conns [2]*pgconn.PgConn
	for i := range conns {
		conn, err := pgconn.ConnectConfig(ctx, &config.Config)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		conns[i] = conn
	}
	// Poolers choose the most or the least recently used session.
	for range 3 {
		mark := rand.Text()
		if _, err := ask(ctx, conns[0], "select set_config('flagledger.session', $1, false)", mark); err != nil {
			return err
		}
		for _, conn := range []*pgconn.PgConn{conns[0], conns[1], conns[0]} {
			found, err := ask(ctx, conn, "select current_setting('flagledger.session', true)")
			if err != nil {
				return err
			}
			if (found == mark) != (conn == conns[0]) {
				return ErrPooled
			}
		}
	}
	return nil
}

// ask returns the single value of a query.
func ask(ctx context.Context, conn *pgconn.PgConn, sql string, args ...string) (string, error) {
	var values [][]byte
	for _, a := range args {
		values = append(values, []byte(a))
	}
	result := conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	if result.Err != nil {
		return "", result.Err
	}
	return string(result.Rows[0][0]), nil
}
