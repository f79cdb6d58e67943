package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/events"
)

// Schemas of read models.
const (
	liveSchema     = "read"      // tables that readers use
	buildingSchema = "read_next" // tables that a rebuild fills
	// replacedSchema holds tables that a rebuild has replaced, until it drops them. They have no checkpoints.
	replacedSchema = "read_old"
)

// checkpoint is a read model's position in the log. It is stored beside the tables and commits with their rows.
type checkpoint struct {
	events.LogPosition
	version int
	table   uint32 // the oid of the first table: a rebuild changes it
}

var (
	// errNoReadModel reports that a projection's tables are missing, or are of another version.
	errNoReadModel = errors.New("the read model does not exist in this version")
	// errAnotherLog reports that a read model was built from a different log than the store's.
	errAnotherLog = errors.New("the read model was built from a different log")
)

// createSchema creates a schema of read models with its table of checkpoints, and the schema of replaced tables, if
// they are missing. It is idempotent.
func createSchema(ctx context.Context, db execer, schema string) error {
	_, err := db.Exec(ctx, fmt.Sprintf(`
		select pg_advisory_xact_lock(hashtext('flagledger read schemas'));
		select from pg_namespace limit 0; -- so that the next statements see what others have created while this waited for the lock
		create schema if not exists %[1]s;
		create schema if not exists %[2]s;
		create table if not exists %[1]s.checkpoints (
			projection text        primary key,
			version    int         not null,
			engine     text        not null,
			commit     bigint      not null,
			prepare    bigint      not null,
			updated_at timestamptz not null,
			log        text        not null default '',
			last_event jsonb       not null default '{}'
		);
		do $$ begin -- a release that did not know of all columns has made the table; to alter it locks it, so that is done once
			if not exists (select from pg_attribute where attrelid = '%[1]s.checkpoints'::regclass
				and attname = 'last_event') then
				alter table %[1]s.checkpoints add column if not exists log text not null default '',
					add column if not exists last_event jsonb not null default '{}';
			end if;
		end $$`, schema, replacedSchema))
	return err
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readCheckpoint returns the checkpoint of a read model in whatever log, or errNoReadModel if this version does not
// exist.
func (p Projection) readCheckpoint(ctx context.Context, db querier, schema string) (c checkpoint, err error) {
	var tables int
	err = db.QueryRow(ctx, `select count(*) from pg_tables where schemaname = $1 and tablename = any($2)`, schema, append(p.Tables, "checkpoints")).
		Scan(&tables)
	if err != nil {
		return c, err
	}
	if tables <= len(p.Tables) {
		return c, errNoReadModel
	}
	// Columns that may be missing are read as members of the row.
	rows, err := db.Query(
		ctx,
		`select version, engine, coalesce(to_jsonb(c) ->> 'log', '') as log, coalesce(to_jsonb(c) -> 'last_event', '{}') as
			last_event,
		commit, prepare, to_regclass($2)::oid as first_table
		from `+schema+`.checkpoints c where projection = $1`,
		p.Name,
		schema+"."+p.Tables[0],
	)
	if err != nil {
		return c, err
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[struct {
		Version    int
		FirstTable uint32
		checkpointColumns
	}])
	c = checkpoint{row.checkpoint(), row.Version, row.FirstTable}
	if errors.Is(err, pgx.ErrNoRows) || err == nil && c.version != p.Version {
		return c, errNoReadModel
	}
	return c, err
}

// liveVersion returns the version of the live tables; 0 if there are none.
func (p Projection) liveVersion(ctx context.Context, db querier) (version int, err error) {
	var checkpoints bool
	err = db.QueryRow(ctx, `select to_regclass('`+liveSchema+`.checkpoints') is not null`).Scan(&checkpoints)
	if err != nil || !checkpoints {
		return 0, err
	}
	err = db.QueryRow(ctx, `select coalesce(max(version), 0) from `+liveSchema+`.checkpoints where projection = $1`, p.Name).
		Scan(&version)
	return version, err
}

// checkpointColumns holds the columns that make up a checkpoint.
type checkpointColumns struct {
	Engine, Log     string
	Commit, Prepare uint64
	LastEvent       events.EventRef
}

func (c checkpointColumns) checkpoint() events.LogPosition {
	return events.LogPosition{
		Engine:   c.Engine,
		LogID:    c.Log,
		Position: events.Position{Commit: c.Commit, Prepare: c.Prepare},
		Last:     c.LastEvent,
	}
}

// resume returns a read model's checkpoint in the log of a store, or errAnotherLog if it was built from a different
// one. It writes the log's id into a checkpoint without one.
func (p Projection) resume(
	ctx context.Context, conn *pgx.Conn, schema string, store events.Store,
) (c checkpoint, err error) {
	if c, err = p.readCheckpoint(ctx, conn, schema); err != nil {
		return c, err
	}
	log, err := store.Log(ctx)
	if err != nil {
		return c, err
	}
	held, err := log.Holds(ctx, store, c.LogPosition)
	if err != nil {
		return c, err
	}
	if !held {
		return c, errAnotherLog
	}
	if c.LogID == "" && log.ID != "" {
		c.LogID = log.ID
		_, err = conn.Exec(ctx, `update `+schema+`.checkpoints set log = $2 where projection = $1 and log = ''`, p.Name,
			c.LogID)
	}
	return c, err
}

// create creates a projection's empty tables, without the indexes that index makes, and a checkpoint at the beginning
// of the log.
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
		if _, err := tx.Exec(
			ctx, `delete from keep.parked where projection = $1 and building = $2`, p.Name, schema == buildingSchema,
		); err != nil {
			return err
		}
		_, err := tx.Exec(ctx,
			`insert into `+schema+`.checkpoints (projection, version, engine, commit, prepare, updated_at) values ($1, $2, $3, 0, 0, now())`,
			p.Name, p.Version, engine)
		return err
	})
}

// index creates the remaining indexes with this many additional processors, and gathers statistics from a small
// sample. A row that is too large for an index causes an error that says so.
func (p Projection) index(ctx context.Context, conn *pgx.Conn, workers int) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(
			ctx,
			fmt.Sprintf(`set local max_parallel_maintenance_workers = %d; set local default_statistics_target = 10;`, workers)+
				p.Indexes+`;analyze `+strings.Join(p.Tables, ", "),
		)
		return err
	})
}

// drop drops a projection's tables and checkpoint in a schema.
func (p Projection) drop(ctx context.Context, db execer, schema string) error {
	if _, err := db.Exec(ctx, `drop table if exists `+schema+`.`+strings.Join(p.Tables, `, `+schema+`.`)); err != nil {
		return err
	}
	_, err := db.Exec(ctx, `delete from `+schema+`.checkpoints where projection = $1`, p.Name)
	return err
}

// dropReplaced drops the tables in replacedSchema one by one. A reader with an old plan may briefly lock several of
// them, so that one statement for all could deadlock with it.
func (p Projection) dropReplaced(ctx context.Context, conn execer) error {
	for _, table := range p.Tables {
		if _, err := conn.Exec(ctx, `drop table if exists `+replacedSchema+`.`+table); err != nil {
			return err
		}
	}
	return nil
}
