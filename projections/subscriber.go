package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"flagledger/events"
	"flagledger/retry"
)

// process holds what the projections of one process share.
type process struct {
	store       events.Store
	log         *slog.Logger
	feed        *feed
	session     *session
	connections *connections
	traffic     *traffic // to which a rebuild yields; nil without a rebuild
	// ending waits for builds that have switched and still drop the old tables on open connections.
	ending sync.WaitGroup
	// switching is held by a rebuild that is about to switch or creates indexes, because it occupies one of the few
	// connections.
	switching sync.Mutex
	large     sync.Mutex // held while applying a large event, so that only one processor does
}

// largeEvent is the size in bytes of JSON from which an event is large.
const largeEvent = 32 << 10

// subscriber is a Watermill subscriber of one projection: it sends a message for the events of a page and waits for
// its Ack. Then it commits what the handler queued together with the checkpoint.
type subscriber struct {
	*process
	projection Projection
	schema     string
	// committed is called with each written checkpoint, resumed with each found one.
	committed, resumed func(events.LogPosition)
	// failed, if set, is called with whether the projection has failed.
	failed func(bool)
	// build, if set, makes the subscriber fill new tables from the beginning of the log, and end after the switch to
	// them.
	build    *build
	follower *follower
	delays   interface{ Reset() }
	model    Model // nil if the rows must be loaded first
	newer    bool  // whether the tables were of a newer version when last read
}

// A page without events of the projection causes no transaction. Moving the checkpoint past such pages from time to
// time shortens a restart.
const (
	idleInterval = 5 * time.Second
	idleEvents   = 1000
	// buildInterval is the time between attempts to switch while there are no events.
	buildInterval = 50 * time.Millisecond
	heldInterval  = 5 * time.Millisecond // the same while the live projector is stopped
)

var (
	// errNack reports that the handler could not apply an event.
	errNack = errors.New("the event could not be applied")
	// errMoved reports that the checkpoint is not at this projector's position.
	errMoved = errors.New("another process moved the checkpoint")
	// errNewer reports that the live tables are of a newer version than this program's.
	errNewer = errors.New("the read model is of a newer version: a newer release updates it")
)

// work is the context value of a message: the events, and the batch for their statements.
type work struct {
	events []events.Recorded // those not yet applied
	batch  *Batch
	apply  func(*Batch, events.Recorded) error
	err    error
}

type workKey struct{}

// Subscribe implements message.Subscriber. The topic is the projection's name and has no further meaning.
func (s *subscriber) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	messages := make(chan *message.Message)
	go func() {
		defer close(messages)
		delays := retry.NewBackoff()
		s.delays = delays
		for ctx.Err() == nil {
			err := s.run(ctx, messages)
			if s.build != nil {
				s.build.err = err
				return
			}
			if ctx.Err() != nil {
				return
			}
			newer := errors.Is(err, errNewer)
			s.reportFailure(!errors.Is(err, errLost) && !newer) // otherwise another process may update it
			wait := delays.NextBackOff()
			switch {
			case newer && !s.newer:
				s.log.Warn("a newer release carries a read model on; update this node", "projection", s.projection.Name,
					"version", s.projection.Version)
			case !newer && !errors.Is(err, errMoved) && !errors.Is(err, errLost) && errorCode(err) != deadlock:
				s.log.Error("projection stopped; retrying", "projection", s.projection.Name, "retry_in", wait, "err", err)
			}
			s.newer = newer
			_ = retry.Sleep(ctx, wait)
		}
	}()
	return messages, nil
}

func (s *subscriber) reportFailure(failed bool) {
	if s.failed != nil {
		s.failed(failed)
	}
}

// Close implements message.Subscriber. A subscriber ends with its context.
func (s *subscriber) Close() error { return nil }

// run follows the log until an error, unless another process runs this projection.
func (s *subscriber) run(ctx context.Context, messages chan<- *message.Message) error {
	if s.build == nil {
		s.follower = s.feed.follow()
	}
	defer s.follower.leave()
	if s.build == nil {
		if err := s.replaceOlder(ctx, messages); err != nil {
			return err
		}
	}
	waiting := time.AfterFunc(time.Second, func() {
		if s.build != nil {
			s.log.Info("another process builds the read model; waiting for it",
				"projection", s.projection.Name)
		}
	})
	held, release, err := s.session.hold(ctx, s.schema+"."+s.projection.Name, s.follower.expect)
	waiting.Stop()
	if err != nil {
		return err
	}
	defer release()
	err = s.follow(held, messages)
	if errors.Is(err, errNotIndexed) {
		s.build.indexFirst = true
		err = s.follow(held, messages)
	}
	if err != nil && held.Err() != nil {
		return context.Cause(held)
	}
	return err // nil for a build that has finished, whatever happened since
}

// replaceOlder builds new tables beside the older version's, which an older node may still update, and switches
// to them. It returns errNewer if the tables are of a newer version: a program never downgrades them.
func (s *subscriber) replaceOlder(ctx context.Context, messages chan<- *message.Message) error {
	version, err := s.liveVersion(ctx)
	switch {
	case err != nil:
		return err
	case version > s.projection.Version:
		return errNewer
	case version == 0 || version == s.projection.Version:
		return nil
	}
	return s.buildNext(ctx, messages, true)
}

func (s *subscriber) liveVersion(ctx context.Context) (version int, err error) {
	err = s.connections.use(ctx, liveSchema, func(conn *pgx.Conn) error {
		version, err = s.projection.liveVersion(ctx, conn)
		return err
	})
	return version, err
}

// buildNext builds new tables and switches to them.
func (s *subscriber) buildNext(ctx context.Context, messages chan<- *message.Message, upgrade bool) error {
	s.log.Info("building a read model", "projection", s.projection.Name, "version", s.projection.Version)
	b := s.builder(s.follower)
	b.build.upgrade = upgrade
	err := b.run(ctx, messages)
	s.follower.building = false
	return err
}

func (s *subscriber) follow(ctx context.Context, messages chan<- *message.Message) error {
	if s.build != nil {
		defer s.build.endHold()
		if err := s.createTablesRetrying(ctx); err != nil {
			return err
		}
	}
	c, parked, err := s.resume(ctx)
	if errors.Is(err, errAnotherLog) {
		s.log.Warn("the event store holds a different log than the read model was built from: it is rebuilt",
			"projection", s.projection.Name, "engine", s.store.Engine(), "engine before", c.Engine,
			"position before", c.Position)
	}
	if errors.Is(err, errNoReadModel) || errors.Is(err, errAnotherLog) {
		if version, err := s.liveVersion(ctx); err != nil {
			return err
		} else if version != 0 && version != s.projection.Version {
			return errMoved // since replaceOlder checked
		}
		if err := s.buildNext(ctx, messages, false); err != nil {
			return err
		}
		c, parked, err = s.resume(ctx)
	}
	if err != nil {
		return err
	}
	s.resumed(c.LogPosition)
	s.model = nil
	p := cursor{checkpoint: c, reached: c.LogPosition, parked: parked, written: time.Now()}
	for {
		page, err := s.follower.next(ctx, p.reached.Position, s.interval())
		if err == nil {
			page, err = s.cutAtLive(ctx, page, p.reached.Position)
		}
		if err != nil {
			return err
		}
		if s.build == nil && page.Next == p.reached.Position && !page.Live {
			if err := s.confirm(ctx, p.checkpoint); err != nil {
				return err
			}
		}
		if err := s.apply(ctx, messages, page, &p); err != nil {
			return err
		}
		s.delays.Reset()
		s.reportFailure(false)
		if s.build == nil {
			continue
		}
		s.build.report(p.reached.Position, len(page.Events))
		done := false
		switch {
		case !s.build.indexed:
			if page.Live || s.build.reachedLive(p.reached.Position) {
				err = s.index(ctx)
			}
		case s.build.comparing:
			done, err = s.compare(ctx, &p)
		case page.Live:
			done, err = s.finish(ctx, &p)
		default: // more events follow: the live projector must not wait for them
			s.build.failExpiredHold()
		}
		if done || err != nil {
			return err
		}
	}
}

func (s *subscriber) interval() time.Duration {
	switch {
	case s.build == nil:
		return idleInterval
	case s.build.conn != nil:
		return heldInterval
	}
	return buildInterval
}

// resume returns the read model's checkpoint and its parked streams.
func (s *subscriber) resume(ctx context.Context) (c checkpoint, parked map[string]bool, err error) {
	err = s.connections.use(ctx, s.schema, func(conn *pgx.Conn) error {
		if c, err = s.projection.resume(ctx, conn, s.schema, s.store); err != nil {
			return err
		}
		parked, err = s.projection.parked(ctx, conn, s.schema)
		return err
	})
	return c, parked, err
}

// confirm returns errMoved if the checkpoint differs from the given one. It runs when no events come although the end
// of the log is not reached: a rebuild may have replaced a checkpoint past the end.
func (s *subscriber) confirm(ctx context.Context, c checkpoint) error {
	now, _, err := s.resume(ctx)
	if err == nil && now != c {
		err = errMoved
	}
	return err
}

// cursor is a projector's position in the log.
type cursor struct {
	checkpoint
	reached events.LogPosition // the checkpoint, or later without events of the projection in between
	parked  map[string]bool    // streams that it does not follow
	passed  int                // events since the checkpoint
	written time.Time          // when the checkpoint was written
}

// apply commits the events of a page that the projection follows. If one fails, it commits each by itself and parks
// the streams of those that fail.
func (s *subscriber) apply(ctx context.Context, messages chan<- *message.Message, page events.Page, p *cursor) error {
	list := make([]events.Recorded, 0, len(page.Events))
	own := false // includes parked streams: commands wait for the page, and a rebuild may follow the stream again
	for _, e := range page.Events {
		if s.projection.follows(e.Name) {
			own = true
			if !p.parked[e.Stream] {
				list = append(list, e)
			}
		}
	}
	p.reached = p.reached.After(page.Events, page.Next)
	p.LogID = p.reached.LogID
	p.passed += len(page.Events)
	if !own && (page.Next == p.Position || p.passed < idleEvents && time.Since(p.written) < idleInterval) {
		return nil
	}
	err := s.commit(ctx, messages, list, p.reached, p)
	if !inapplicable(err) {
		return err
	}
	for _, e := range list {
		if p.parked[e.Stream] {
			continue
		}
		err := s.commit(ctx, messages, []events.Recorded{e}, p.After([]events.Recorded{e}, e.Position), p)
		if inapplicable(err) {
			err = s.park(ctx, e, p, err)
			p.parked[e.Stream] = true
		}
		if err != nil {
			return err
		}
	}
	return s.commit(ctx, messages, nil, p.reached, p)
}

// commit delivers events and commits their statements with the checkpoint. A rebuild yields to traffic, except while
// it stops the live projector.
func (s *subscriber) commit(
	ctx context.Context, messages chan<- *message.Message, list []events.Recorded, next events.LogPosition, p *cursor,
) error {
	if s.build == nil || s.build.conn != nil {
		return s.commitNow(ctx, messages, list, next, p)
	}
	return s.traffic.yield(ctx, func() error { return s.commitNow(ctx, messages, list, next, p) })
}

func (s *subscriber) commitNow(
	ctx context.Context, messages chan<- *message.Message, list []events.Recorded, next events.LogPosition, p *cursor,
) (err error) {
	defer func() {
		if err != nil {
			s.model = nil // it may cache uncommitted rows
		}
	}()
	apply := s.projection.Apply
	if s.projection.New != nil {
		if s.model == nil {
			s.model = s.projection.New()
		}
		use := func(run func(*pgx.Conn) error) error { return s.connections.use(ctx, s.schema, run) }
		if err := s.model.Load(ctx, use, list); err != nil {
			return err
		}
		apply = s.model.Apply
	}
	batch := &Batch{}
	s.moveCheckpoint(batch, next, p)
	if len(list) > 0 {
		if err := deliver(ctx, messages, &work{events: list, batch: batch, apply: apply}); err != nil {
			return err
		}
	}
	return s.flush(ctx, batch, next, p)
}

// moveCheckpoint queues the move of the checkpoint from this projector's position, and notifies waiting nodes. It also
// checks the tables' oid and the number of parked streams: a rebuild or a retry changes these at the same position.
func (s *subscriber) moveCheckpoint(batch *Batch, next events.LogPosition, p *cursor) {
	batch.exec(
		`update checkpoints set commit = $2, prepare = $3, updated_at = now(), log = $9, last_event = $10
			where projection = $1 and version = $4 and commit = $5 and prepare = $6 and to_regclass($7)::oid = $8
			and (select count(*) from keep.parked where projection = $1 and building = $11) = $12`,
		s.projection.Name,
		next.Position.Commit,
		next.Position.Prepare,
		p.version,
		p.Position.Commit,
		p.Position.Prepare,
		s.schema+"."+s.projection.Tables[0],
		p.table,
		next.LogID,
		next.Last,
		s.schema == buildingSchema,
		len(p.parked),
	)
	if s.schema == liveSchema {
		batch.exec(`select pg_notify('`+progressChannel+`', $1)`, formatProgress(s.projection.Name, next.LogID, next.Position))
	}
}

// flush commits a batch that moves the checkpoint.
func (s *subscriber) flush(ctx context.Context, batch *Batch, next events.LogPosition, p *cursor) error {
	err := s.connections.use(ctx, s.schema, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			return batch.run(ctx, tx, func(moved pgconn.CommandTag) error {
				if moved.RowsAffected() != 1 {
					return errMoved // another process has applied the events: their results do not matter
				}
				return nil
			})
		})
	})
	if err != nil {
		return err
	}
	p.LogPosition, p.passed, p.written = next, 0, time.Now()
	s.committed(p.LogPosition)
	return nil
}

// deliver sends a message with some events and waits for its Ack.
func deliver(ctx context.Context, messages chan<- *message.Message, w *work) error {
	m := message.NewMessageWithContext(context.WithValue(ctx, workKey{}, w), w.events[0].ID.String(), nil)
	select {
	case messages <- m:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-m.Acked():
		return nil
	case <-m.Nacked():
		return fmt.Errorf("%w: %w", errNack, w.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}
