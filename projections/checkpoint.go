package projections

import (
	"context"
	"errors"
	"fmt"

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
	err = db.QueryRow(ctx, `select count(*) from pg_tables where schemaname = $1 and tablename = any($2)`, schema, append(p.Tables, "checkpoints")).Scan(&tables)
	if err != nil {
		return c, err
	}
	if tables <= len(p.Tables) {
		return c, errNoReadModel
	}
	err = db.QueryRow(ctx, `select version, engine, commit, prepare, to_regclass($2)::oid from `+schema+`.checkpoints where projection = $1`,
		p.Name, schema+"."+p.Tables[0]).Scan(&c.version, &c.engine, &c.position.Commit, &c.position.Prepare, &c.table)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && (c.version != p.Version || c.engine != engine) {
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
		if _, err := tx.Exec(ctx, p.Schema); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from keep.parked where projection = $1 and building = $2`, p.Name, schema == buildingSchema); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into `+schema+`.checkpoints (projection, version, engine, commit, prepare, updated_at) values ($1, $2, $3, 0, 0, now())`,
			p.Name, p.Version, engine)
		return err
	})
}

func (p Projection) drop(ctx context.Context, db execer, schema string) error {
	for _, table := range p.Tables {
		if _, err := db.Exec(ctx, `drop table if exists `+schema+`.`+table); err != nil {
			return err
		}
	}
	_, err := db.Exec(ctx, `delete from `+schema+`.checkpoints where projection = $1`, p.Name)
	return err
}
