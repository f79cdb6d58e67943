package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/events"
)

// rebuildConnections is how many connections a rebuild has for transactions. One of them may wait to switch.
const rebuildConnections = 3

// Rebuild builds new tables of read models from the log, which it reads once for all of them, and switches to each as soon as it has caught up:
// readers see the old rows or the new ones, never none. report, if not nil, is called after each page, from several goroutines.
func Rebuild(ctx context.Context, url string, store events.Store, list []Projection, report func(projection string, reached events.Position), log *slog.Logger) error {
	p, err := newProcess(url, store, rebuildConnections, log)
	if err != nil {
		return err
	}
	p.feed.catchUpOnly = true
	var subscribers []*subscriber
	for _, projection := range list {
		s := &subscriber{process: p, projection: projection}
		b := s.builder(p.feed.follow())
		b.follower.expect()
		if report != nil {
			b.build.report = func(position events.Position) { report(projection.Name, position) }
		}
		subscribers = append(subscribers, b)
	}
	if err := p.route(ctx, subscribers...); err != nil {
		return err
	}
	var failed []error
	for _, s := range subscribers {
		if s.build.err != nil {
			failed = append(failed, fmt.Errorf("rebuilding %s: %w", s.projection.Name, s.build.err))
		}
	}
	return errors.Join(failed...)
}

// builder returns a subscriber that builds the same projection beside the live one.
func (s *subscriber) builder(f *follower) *subscriber {
	b := *s
	b.schema = buildingSchema
	b.committed, b.resumed = func(events.Checkpoint) {}, func(events.Checkpoint) {}
	b.follower = f
	b.follower.building = true
	b.build = &build{process: s.process, projection: s.projection, report: func(events.Position) {}}
	return &b
}

// build switches from a projection's live tables to new ones.
type build struct {
	*process
	projection Projection
	report     func(events.Position) // is told how far the new tables are
	conn       *pgxpool.Conn         // from the moment that the live checkpoint is locked
	tx         pgx.Tx
	live       events.Position
	err        error // that the subscriber ended with
}

// finish is called when the new tables have caught up with the log: it locks the live projector's checkpoint, and switches as soon as the new tables
// are as far as that. done is false where they have to follow some more first.
func (s *subscriber) finish(ctx context.Context, p *place) (done bool, err error) {
	if p.Position != p.reached.Position {
		if err := s.commit(ctx, nil, nil, p.reached, p); err != nil {
			return false, err
		}
	}
	return s.build.finish(ctx, p.checkpoint)
}

func (b *build) finish(ctx context.Context, built checkpoint) (done bool, err error) {
	for {
		done, err = b.trySwitch(ctx, built)
		if done || err != nil {
			b.release()
		}
		if code := errorCode(err); code != lockTimeout && code != deadlock {
			return done, err
		}
		if err := pause(ctx, lockInterval); err != nil {
			return false, err
		}
	}
}

// Error codes of Postgres. The live projector may lock its tables, by preparing statements on them, before its checkpoint: then Postgres ends one of
// the two, which begins again at once.
const (
	lockTimeout = "55P03"
	deadlock    = "40P01"
)

// errorCode is the code of an error of Postgres, empty for another.
func errorCode(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

func (b *build) trySwitch(ctx context.Context, built checkpoint) (done bool, err error) {
	if b.conn == nil {
		if !b.switching.TryLock() {
			return false, nil // one after the other
		}
		if err := b.lockLive(ctx); err != nil {
			return false, err
		}
	}
	if built.Position.Compare(b.live) < 0 {
		// The live checkpoint may be after events of other projections. At the head of the log none of this one is missing.
		head, err := b.store.Head(ctx)
		if err != nil || built.Position.Compare(head) < 0 {
			return false, err
		}
	}
	if err := b.switchOver(ctx, built); err != nil {
		return false, err
	}
	return true, b.tx.Commit(ctx)
}

// lockLive is called with switching locked, which release unlocks.
func (b *build) lockLive(ctx context.Context) (err error) {
	if b.conn, err = b.writers.acquire(ctx, liveSchema); err != nil {
		b.switching.Unlock()
		return err
	}
	if err = createSchema(ctx, b.conn, liveSchema); err != nil {
		return err
	}
	if b.tx, err = b.conn.Begin(ctx); err != nil {
		return err
	}
	// Readers queue behind a switch that waits for a longer reader: they shall not do so for long.
	if _, err = b.tx.Exec(ctx, `set local lock_timeout = '2s'`); err != nil {
		return err
	}
	b.live = events.Position{}
	err = b.tx.QueryRow(ctx, `select commit, prepare from checkpoints where projection = $1 for update`, b.projection.Name).Scan(&b.live.Commit, &b.live.Prepare)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

func (b *build) switchOver(ctx context.Context, built checkpoint) error {
	name := b.projection.Name
	// Another process that took the lock over, which this one may not have heard of yet, has begun to build them again.
	own, err := b.tx.Exec(ctx, `select from `+buildingSchema+`.checkpoints
		where projection = $1 and commit = $2 and prepare = $3 and to_regclass($4)::oid = $5 for update`,
		name, built.Position.Commit, built.Position.Prepare, buildingSchema+"."+b.projection.Tables[0], built.table)
	if err != nil {
		return err
	}
	if own.RowsAffected() != 1 {
		return errMoved
	}
	if err := b.projection.drop(ctx, b.tx, liveSchema); err != nil {
		return err
	}
	for _, table := range b.projection.Tables {
		if _, err := b.tx.Exec(ctx, `alter table `+buildingSchema+`.`+table+` set schema `+liveSchema); err != nil {
			return err
		}
	}
	for _, statement := range []string{
		`insert into ` + liveSchema + `.checkpoints select * from ` + buildingSchema + `.checkpoints where projection = $1`,
		`delete from ` + buildingSchema + `.checkpoints where projection = $1`,
		`delete from keep.parked where projection = $1 and not building`,
		`update keep.parked set building = false where projection = $1`,
	} {
		if _, err := b.tx.Exec(ctx, statement, name); err != nil {
			return err
		}
	}
	// The new tables may be further than the old ones were, and nobody else will tell those who wait for that.
	_, err = b.tx.Exec(ctx, `select pg_notify($1, $2)`, progressChannel, formatProgress(name, built.LogID, built.Position))
	return err
}

// release lets the live projector go on, where it was stopped.
func (b *build) release() {
	if b.conn == nil {
		return
	}
	if b.tx != nil {
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		defer cancel()
		_ = b.tx.Rollback(ctx) // nothing, where it is committed
	}
	b.conn.Release()
	b.conn, b.tx = nil, nil
	b.switching.Unlock()
}
