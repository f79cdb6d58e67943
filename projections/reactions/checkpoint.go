package reactions

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// checkpoint is how far a log has been followed.
type checkpoint struct {
	engine   string
	logID    string // what findLogID returns of the log
	position events.Position
}

// Begin notes the head of the log as where reactions begin, unless they have begun in this log before. Facts that are appended after it are reacted to.
func (r *Reactions) Begin(ctx context.Context) error {
	_, err := r.resume(ctx)
	return err
}

// AnotherLog reports whether this node found a checkpoint of another log of the same engine, as after a restore, and has replaced it.
func (r *Reactions) AnotherLog() bool { return r.anotherLog.Load() }

// resume finds how far the log has been followed. A checkpoint of another log says nothing of this one: the head of the log takes its place.
func (r *Reactions) resume(ctx context.Context) (checkpoint, error) {
	for {
		logID, err := r.findLogID(ctx)
		if err != nil {
			return checkpoint{}, err
		}
		var c checkpoint
		err = r.pool.QueryRow(ctx, `select engine, log, commit, prepare from keep.reactions`).Scan(&c.engine, &c.logID, &c.position.Commit, &c.position.Prepare)
		if errors.Is(err, pgx.ErrNoRows) {
			err = r.startAtHead(ctx, logID, nil)
		} else if err == nil {
			var same bool
			if same, err = r.isOfThisLog(ctx, c, logID); same {
				c.logID = logID
				return c, nil
			}
			if err == nil {
				err = r.startAtHead(ctx, logID, &c)
			}
		}
		if err != nil {
			return checkpoint{}, err
		}
	}
}

// isOfThisLog reports whether a checkpoint was made in the log with an id.
func (r *Reactions) isOfThisLog(ctx context.Context, c checkpoint, logID string) (bool, error) {
	if c.engine != r.store.Engine() || c.logID != "" && c.logID != logID {
		return false, nil
	}
	for _, err := range r.store.Subscribe(ctx, c.position) {
		if errors.Is(err, events.ErrPastEnd) {
			return false, nil
		}
		return err == nil, err
	}
	return false, ctx.Err()
}

// findLogID finds what tells the log apart from others: the id and the position of its first event. It is empty where there is none.
func (r *Reactions) findLogID(ctx context.Context) (string, error) {
	for page, err := range r.store.Subscribe(ctx, events.Position{}) {
		if err != nil {
			return "", err
		}
		if len(page.Events) > 0 {
			return logIDOf(page.Events[0]), nil
		}
		if page.Live {
			break
		}
	}
	return "", nil
}

func logIDOf(first events.Recorded) string { return first.ID.String() + " " + first.Position.String() }

// startAtHead notes the head of the log in place of a checkpoint, or where there is none. It changes nothing where another node was quicker.
func (r *Reactions) startAtHead(ctx context.Context, logID string, before *checkpoint) error {
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
		engine, logID, head.Commit, head.Prepare, before.engine, before.logID, before.position.Commit, before.position.Prepare)
	if err != nil || replaced.RowsAffected() == 0 {
		return err
	}
	r.log.Warn("the event store holds another log than before: reactions begin at its head", "engine", engine, "position", head,
		"engine before", before.engine, "position before", before.position)
	if engine == before.engine {
		r.anotherLog.Store(true)
	}
	return nil
}
