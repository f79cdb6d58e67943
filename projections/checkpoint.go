package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/events"
)

// The schemas that read models live in: those that are read, and those under construction beside them.
const (
	liveSchema     = "read"
	buildingSchema = "read_next"
)

// checkpoint is how far a read model has followed the log. It stands in the schema of its tables and commits with their rows.
type checkpoint struct {
	version  int
	engine   string
	position events.Position
	table    uint32 // the oid of the first of the tables: another one after a rebuild
}

// errNoReadModel says that a projection's tables do not stand, or not in the shape that this program reads.
var errNoReadModel = errors.New("the read model does not exist in this version")

// createSchema makes room for read models. It is safe to call at any time.
func createSchema(ctx context.Context, db execer, schema string) error {
	_, err := db.Exec(ctx, fmt.Sprintf(`
		select pg_advisory_xact_lock(hashtext('flagledger read schemas'));
		create schema if not exists %[1]s;
		create table if not exists %[1]s.checkpoints (
			projection text        primary key,
			version    int         not null,
			engine     text        not null,
			commit     bigint      not null,
			prepare    bigint      not null,
			updated_at timestamptz not null
		)`, schema))
	return err
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readCheckpoint finds where a read model stands: errNoReadModel where there is none that this program can go on with.
func (p Projection) readCheckpoint(ctx context.Context, db querier, schema, engine string) (c checkpoint, err error) {
	var tables int
	err = db.QueryRow(ctx, `select count(*) from pg_tables where schemaname = $1 and tablename = any($2)`, schema, append(p.tables, "checkpoints")).Scan(&tables)
	if err != nil {
		return c, err
	}
	if tables <= len(p.tables) {
		return c, errNoReadModel
	}
	err = db.QueryRow(ctx, `select version, engine, commit, prepare, to_regclass($2)::oid from `+schema+`.checkpoints where projection = $1`,
		p.Name, schema+"."+p.tables[0]).Scan(&c.version, &c.engine, &c.position.Commit, &c.position.Prepare, &c.table)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && (c.version != p.version || c.engine != engine) {
		return c, errNoReadModel
	}
	return c, err
}

// create makes a projection's tables anew, without rows, and its checkpoint at the beginning of the log.
func (p Projection) create(ctx context.Context, conn *pgx.Conn, schema, engine string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := createSchema(ctx, tx, schema); err != nil {
			return err
		}
		if err := p.drop(ctx, tx, schema); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, p.schema); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from keep.parked where projection = $1 and building = $2`, p.Name, schema == buildingSchema); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into `+schema+`.checkpoints (projection, version, engine, commit, prepare, updated_at) values ($1, $2, $3, 0, 0, now())`,
			p.Name, p.version, engine)
		return err
	})
}

func (p Projection) drop(ctx context.Context, db execer, schema string) error {
	for _, table := range p.tables {
		if _, err := db.Exec(ctx, `drop table if exists `+schema+`.`+table); err != nil {
			return err
		}
	}
	_, err := db.Exec(ctx, `delete from `+schema+`.checkpoints where projection = $1`, p.Name)
	return err
}

// parked reads the streams that a projection has given up on.
func (p Projection) parked(ctx context.Context, conn *pgx.Conn, schema string) (map[string]bool, error) {
	rows, err := conn.Query(ctx, `select stream from keep.parked where projection = $1 and building = $2`, p.Name, schema == buildingSchema)
	if err != nil {
		return nil, err
	}
	streams, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	parked := map[string]bool{}
	for _, stream := range streams {
		parked[stream] = true
	}
	return parked, nil
}

// lock makes this connection the one that carries on a projection in a schema, for as long as the connection lives: a node that dies
// lets go at once. It reports whether it could be had.
func (p Projection) lock(ctx context.Context, conn *pgx.Conn, schema string) (locked bool, err error) {
	err = conn.QueryRow(ctx, `select pg_try_advisory_lock(hashtext('flagledger projection'), hashtext($1))`, schema+"."+p.Name).Scan(&locked)
	return locked, err
}

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
