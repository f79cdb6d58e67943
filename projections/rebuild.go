package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/events"
)

// Rebuild makes read models anew from the log, beside the ones that are read, and switches to each in one transaction when it is as far as the
// live one. It works while servers run; readers see the old rows or the new ones, never none. report, if not nil, is told after each page
// how far a projection is; it must be safe for use from several goroutines.
func Rebuild(ctx context.Context, url string, store events.Store, list []Projection, report func(projection string, reached events.Position), log *slog.Logger) error {
	var subscribers []*subscriber
	for _, p := range list {
		s := &subscriber{projection: p, url: url, store: store, log: log}
		b := s.builder()
		if report != nil {
			b.committed = func(position events.Position) { report(p.Name, position) }
		}
		subscribers = append(subscribers, b)
	}
	if err := route(ctx, subscribers...); err != nil {
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
func (s *subscriber) builder() *subscriber {
	b := *s
	b.schema = buildingSchema
	b.committed = func(events.Position) {}
	b.build = &build{projection: s.projection, url: s.url, store: s.store}
	return &b
}

// build switches from a projection's live tables to new ones.
type build struct {
	projection Projection
	url        string
	store      events.Store
	conn       *pgx.Conn // from the moment that the live checkpoint is locked
	tx         pgx.Tx
	live       events.Position
	err        error // that the subscriber ended with
}

// finish is called when the new tables have caught up with the log. It stops the live projector by locking its checkpoint, and
// switches as soon as the new tables are as far as that. done is false where they have to follow some more first.
func (b *build) finish(ctx context.Context, reached events.Position) (done bool, err error) {
	for {
		done, err = b.try(ctx, reached)
		if done || err != nil {
			b.release()
		}
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != lockTimeout && pg.Code != deadlock {
			return done, err
		}
		if err := pause(ctx, lockInterval); err != nil {
			return false, err
		}
	}
}

// What Postgres says when somebody's lock stood in the way for too long, and when each waited for the other: the live projector may hold its tables, which
// it prepares statements on, before it comes to its checkpoint.
const (
	lockTimeout = "55P03"
	deadlock    = "40P01"
)

func (b *build) try(ctx context.Context, reached events.Position) (done bool, err error) {
	if b.tx == nil {
		if err := b.lockLive(ctx); err != nil {
			return false, err
		}
	}
	if reached.Compare(b.live) < 0 {
		// The live checkpoint may stand after others' events, where the log has some. What counts is that no event of ours is missing.
		head, err := b.store.Head(ctx)
		if err != nil || reached.Compare(head) < 0 {
			return false, err
		}
	}
	if err := b.switchOver(ctx, reached); err != nil {
		return false, err
	}
	return true, b.tx.Commit(ctx)
}

func (b *build) lockLive(ctx context.Context) (err error) {
	if b.conn, err = connect(ctx, b.url, liveSchema); err != nil {
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

func (b *build) switchOver(ctx context.Context, reached events.Position) error {
	name := b.projection.Name
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
	_, err := b.tx.Exec(ctx, `select pg_notify($1, $2)`, progressChannel, formatProgress(name, reached))
	return err
}

func (b *build) release() {
	if b.conn != nil {
		disconnect(b.conn)
	}
	b.conn, b.tx = nil, nil
}
