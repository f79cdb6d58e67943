package projections

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// connect opens a connection of a projector: unqualified names are those of its schema. Its commits wait for the disk: a crash that took some back
// would go unnoticed until the next event.
func connect(ctx context.Context, url, schema string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = 2 * time.Second
	config.RuntimeParams["search_path"] = schema
	config.RuntimeParams["application_name"] = "flagledger projector"
	// Rows are found by their keys. A plan that was made while a table was empty must not go through all of it for ever.
	config.RuntimeParams["enable_seqscan"] = "off"
	config.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	return pgx.ConnectConfig(ctx, config)
}

func disconnect(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// lock makes this connection the one that carries on a projection in a schema, for as long as the connection lives: a node that dies
// lets go at once. It reports whether it could be had.
func (p Projection) lock(ctx context.Context, conn *pgx.Conn, schema string) (locked bool, err error) {
	err = conn.QueryRow(ctx, `select pg_try_advisory_lock(hashtext('flagledger projection'), hashtext($1))`, schema+"."+p.Name).Scan(&locked)
	return locked, err
}
