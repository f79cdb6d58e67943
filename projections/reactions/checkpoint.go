package reactions

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
)

// Checkpoint records how far reactions have followed the log.
type Checkpoint struct {
	pool  *pgxpool.Pool
	store events.Store
	log   *slog.Logger

	begun      atomic.Bool // this node has found or recorded a checkpoint of the log
	anotherLog atomic.Bool
}

// NewCheckpoint returns the checkpoint in a database with the current schema.
func NewCheckpoint(pool *pgxpool.Pool, store events.Store, log *slog.Logger) *Checkpoint {
	return &Checkpoint{pool: pool, store: store, log: log}
}

// Begin records the head of the log as the start of reactions, unless they have begun in this log before. Later facts
// cause jobs. Calling it again is cheap.
func (c *Checkpoint) Begin(ctx context.Context) error {
	if c.begun.Load() {
		return nil
	}
	_, err := c.resume(ctx)
	return err
}

// CatchUp returns once all facts in the log at the time of the call have caused their jobs. It does nothing if
// reactions have not begun in this log.
func (r *Reactions) CatchUp(ctx context.Context) error {
	c, err := r.read(ctx)
	if err != nil || c == nil {
		return err
	}
	log, err := r.store.Log(ctx)
	if err != nil {
		return err
	}
	if held, err := log.Holds(ctx, r.store, *c); err != nil || !held {
		return err
	}
	head, err := r.store.Head(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	defer running.Wait()
	defer cancel()
	tick := time.NewTicker(catchUpInterval)
	defer tick.Stop()
	for c != nil && c.Engine == log.Engine && c.Position.Compare(head) < 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if c, err = r.read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// CheckNoServer returns ErrServerRuns if a node follows the log.
func (r *Reactions) CheckNoServer(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `set local lock_timeout = '2s'`) // a server that has just stopped frees it soon
		if err == nil {
			_, err = tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('flagledger reactions'))`)
		}
		return err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "55P03" { // lock_not_available
		return ErrServerRuns
	}
	return err
}

// BeforeImport prepares for importing facts that happened elsewhere or long ago. If jobs follow the log with this id,
// the facts are its missing ones, and jobs continue. Otherwise jobs end with the current facts, and begin again at the
// head after the import.
func (r *Reactions) BeforeImport(ctx context.Context, logID string) error {
	if err := r.CheckNoServer(ctx); err != nil {
		return err
	}
	c, err := r.read(ctx)
	if err != nil || c == nil || c.LogID != "" && c.LogID == logID {
		return err
	}
	if err := r.CatchUp(ctx); err != nil {
		return err
	}
	_, err = r.pool.Exec(ctx, `delete from keep.reactions`)
	return err
}

// ErrServerRuns reports that a node follows the log.
var ErrServerRuns = errors.New("a server runs on this database: stop it first")

const catchUpInterval = 50 * time.Millisecond

// read returns how far reactions have followed a log, or nil if they have not begun.
func (c *Checkpoint) read(ctx context.Context) (*events.LogPosition, error) {
	rows, err := c.pool.Query(ctx, `select engine, log, commit, prepare, last_event from keep.reactions`)
	if err != nil {
		return nil, err
	}
	noted, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[struct {
		Engine, Log     string
		Commit, Prepare uint64
		LastEvent       events.EventRef
	}])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &events.LogPosition{
		Engine:   noted.Engine,
		LogID:    noted.Log,
		Position: events.Position{Commit: noted.Commit, Prepare: noted.Prepare},
		Last:     noted.LastEvent,
	}, err
}

// AnotherLog reports whether this node has found and replaced a checkpoint of a different log, as after a restore or a
// move.
func (c *Checkpoint) AnotherLog() bool { return c.anotherLog.Load() }

// resume returns how far reactions have followed the log. A checkpoint of a different log is replaced by the head of
// the log.
func (c *Checkpoint) resume(ctx context.Context) (events.LogPosition, error) {
	for {
		noted, err := c.read(ctx)
		if err != nil {
			return events.LogPosition{}, err
		}
		log, err := c.store.Log(ctx)
		if err != nil {
			return events.LogPosition{}, err
		}
		if noted != nil {
			held, err := log.Holds(ctx, c.store, *noted)
			if err != nil {
				return events.LogPosition{}, err
			}
			if held {
				noted.LogID = log.ID
				c.begun.Store(true)
				return *noted, nil
			}
		}
		if err := c.startAtHead(ctx, log.ID, noted); err != nil {
			return events.LogPosition{}, err
		}
	}
}

// startAtHead records the head of the log if there is no checkpoint, or in place of one. It does nothing if another
// node was faster.
func (c *Checkpoint) startAtHead(ctx context.Context, logID string, before *events.LogPosition) error {
	head, err := c.store.Head(ctx)
	if err != nil {
		return err
	}
	engine := c.store.Engine()
	if before == nil {
		_, err = c.pool.Exec(
			ctx,
			`insert into keep.reactions (engine, log, commit, prepare, updated_at) values ($1, $2, $3, $4, now())
				on conflict do nothing`,
			engine,
			logID,
			head.Commit,
			head.Prepare,
		)
		if err == nil {
			c.log.Info("reactions begin at the head of the log", "engine", engine, "position", head)
		}
		return err
	}
	replaced, err := c.pool.Exec(
		ctx,
		`update keep.reactions set engine = $1, log = $2, commit = $3, prepare = $4, last_event = '{}', updated_at = now()
		where engine = $5 and log = $6 and commit = $7 and prepare = $8`,
		engine,
		logID,
		head.Commit,
		head.Prepare,
		before.Engine,
		before.LogID,
		before.Position.Commit,
		before.Position.Prepare,
	)
	if err != nil || replaced.RowsAffected() == 0 {
		return err
	}
	c.log.Warn("the event store holds a different log than before: reactions begin at its head", "engine", engine,
		"position", head, "engine before", before.Engine, "position before", before.Position)
	c.anotherLog.Store(true)
	return nil
}
