package reactions

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// Begin notes the head of the log as where reactions begin, unless they have begun in this log before. Facts that are appended after it are reacted to.
func (r *Reactions) Begin(ctx context.Context) error {
	_, err := r.resume(ctx)
	return err
}

// AnotherLog reports whether this node found a checkpoint of another log of the same engine, as after a restore, and has replaced it.
func (r *Reactions) AnotherLog() bool { return r.anotherLog.Load() }

// resume finds how far the log has been followed. A checkpoint of another log says nothing of this one: the head of the log takes its place.
func (r *Reactions) resume(ctx context.Context) (events.Checkpoint, error) {
	for {
		var c events.Checkpoint
		err := r.pool.QueryRow(ctx, `select engine, log, commit, prepare from keep.reactions`).Scan(&c.Engine, &c.LogID, &c.Position.Commit, &c.Position.Prepare)
		found := !errors.Is(err, pgx.ErrNoRows)
		if err != nil && found {
			return events.Checkpoint{}, err
		}
		log, err := r.store.Log(ctx)
		if err != nil {
			return events.Checkpoint{}, err
		}
		switch {
		case found && log.Holds(c):
			c.LogID = log.ID
			return c, nil
		case found:
			err = r.startAtHead(ctx, log.ID, &c)
		default:
			err = r.startAtHead(ctx, log.ID, nil)
		}
		if err != nil {
			return events.Checkpoint{}, err
		}
	}
}

// startAtHead notes the head of the log in place of a checkpoint, or where there is none. It changes nothing where another node was quicker.
func (r *Reactions) startAtHead(ctx context.Context, logID string, before *events.Checkpoint) error {
	head, err := r.store.Head(ctx)
	if err != nil {
		return err
	}
	engine := r.store.Engine()
	if before == nil {
		_, err = r.pool.Exec(ctx, `insert into keep.reactions (engine, log, commit, prepare, updated_at) values ($1, $2, $3, $4, now()) on conflict do nothing`,
			engine, logID, head.Commit, head.Prepare)
		if err == nil {
			r.log.Info("reactions begin at the head of the log", "engine", engine, "position", head)
		}
		return err
	}
	replaced, err := r.pool.Exec(ctx, `update keep.reactions set engine = $1, log = $2, commit = $3, prepare = $4, updated_at = now()
		where engine = $5 and log = $6 and commit = $7 and prepare = $8`,
		engine, logID, head.Commit, head.Prepare, before.Engine, before.LogID, before.Position.Commit, before.Position.Prepare)
	if err != nil || replaced.RowsAffected() == 0 {
		return err
	}
	r.log.Warn("the event store holds another log than before: reactions begin at its head", "engine", engine, "position", head,
		"engine before", before.Engine, "position before", before.Position)
	if engine == before.Engine {
		r.anotherLog.Store(true)
	}
	return nil
}
