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

// process is what the projections that one process carries on share.
type process struct {
	store       events.Store
	log         *slog.Logger
	feed        *feed
	session     *session
	connections *connections
	traffic     *traffic // that a rebuild gives way to; nil for one that does not
	// of builds that have switched and drop the old tables: the connections stay open until then
	ending sync.WaitGroup
	// held by a rebuild that is about to switch or makes indexes: it keeps one of the few connections
	switching sync.Mutex
	large     sync.Mutex // held while one takes in a large event, so that this keeps one processor busy and not all
}

// largeEvent is the size from which an event is large, in bytes of its JSON.
const largeEvent = 32 << 10

// subscriber is a Watermill subscriber over the feed, for one projection: it sends a message for the events of a page
// and waits for its Ack. What the handler queued for them is committed with the checkpoint in one transaction.
type subscriber struct {
	*process
	projection Projection
	schema     string
	// committed is told each checkpoint that is written, resumed each that is found.
	committed, resumed func(events.LogPosition)
	// failed, if set, is told whether the projection has failed or goes on.
	failed func(bool)
	// build, if set, makes the subscriber fill new tables from the beginning of the log, and end once they have been
	// switched to.
	build    *build
	follower *follower
	delays   interface{ Reset() }
	model    Model // of a projection that has one; nil where the rows have to be read first
	newer    bool  // the tables were of a newer version when it looked last
}

// A page without events of the projection costs no transaction. The checkpoint is moved past such pages from time to
// time, so that a restart need not read much again.
const (
	idleInterval = 5 * time.Second
	idleEvents   = 1000
	// buildInterval is the time between attempts to switch to new tables while nothing happens.
	buildInterval = 50 * time.Millisecond
	heldInterval  = 5 * time.Millisecond // likewise, while the live projector is stopped
)

var (
	// errNack says that the handler gave an event back.
	errNack = errors.New("the event could not be applied")
	// errMoved says that the checkpoint is not where this projector left it.
	errMoved = errors.New("the checkpoint was moved by another")
	// errNewer says that the tables which are read are of a newer version than this program's.
	errNewer = errors.New("the read model is of a newer version: a newer release carries it on")
)

// work is what a message carries in its context: events, and the batch that the handler queues their statements in.
type work struct {
	events []events.Recorded // those that are still to be applied
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
			s.tell(!errors.Is(err, errLost) && !newer) // then another process may carry it on
			wait := delays.NextBackOff()
			switch {
			case newer && !s.newer:
				s.log.Warn("a newer release carries a read model on; update this node", "projection", s.projection.Name,
					"version", s.projection.Version)
			case !newer && !errors.Is(err, errMoved) && !errors.Is(err, errLost) && errorCode(err) != deadlock:
				s.log.Error("projection stopped; it tries again", "projection", s.projection.Name, "retry_in", wait, "err", err)
			}
			s.newer = newer
			_ = retry.Sleep(ctx, wait)
		}
	}()
	return messages, nil
}

func (s *subscriber) tell(failed bool) {
	if s.failed != nil {
		s.failed(failed)
	}
}

// Close implements message.Subscriber. A subscriber ends with its context.
func (s *subscriber) Close() error { return nil }

// run follows the log, while no other process does for this projection, until something breaks.
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
			s.log.Info("another process builds the read model; this one waits until that has ended",
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
	return err // nil for a build that has done its work, whatever happened since
}

// replaceOlder builds new tables beside those of an older version, which a node of an older release may carry on
// meanwhile, and switches to them. It returns errNewer where the tables are of a newer version: a program does not go
// back to its own by itself.
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

// buildNext builds new tables, and switches to them when they are whole.
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
		defer s.build.unlockSwitching()
		if err := s.startBuild(ctx); err != nil {
			return err
		}
	}
	c, parked, err := s.resume(ctx)
	if errors.Is(err, errAnotherLog) {
		s.log.Warn("the event store holds another log than the read model was made from: it is rebuilt",
			"projection", s.projection.Name, "engine", s.store.Engine(), "engine before", c.Engine,
			"position before", c.Position)
	}
	if errors.Is(err, errNoReadModel) || errors.Is(err, errAnotherLog) {
		if version, err := s.liveVersion(ctx); err != nil {
			return err
		} else if version != 0 && version != s.projection.Version {
			return errMoved // since replaceOlder looked
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
		s.tell(false)
		if s.build == nil {
			continue
		}
		s.build.report(p.reached.Position, len(page.Events))
		done := false
		switch {
		case !s.build.indexed:
			if page.Live || s.build.atLive(p.reached.Position) {
				err = s.index(ctx)
			}
		case s.build.comparing:
			done, err = s.compare(ctx, &p)
		case page.Live:
			done, err = s.finish(ctx, &p)
		default: // more is to come, which the live projector must not wait for
			s.build.releaseIfExpired()
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

// resume finds where the read model stands, and the streams that it no longer follows.
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

// confirm returns errMoved where the checkpoint is not the given one. It is asked when nothing has come for a while
// although the end of the log is not reached: a checkpoint that was found past the end may have been replaced by a
// rebuild.
func (s *subscriber) confirm(ctx context.Context, c checkpoint) error {
	now, _, err := s.resume(ctx)
	if err == nil && now != c {
		err = errMoved
	}
	return err
}

// cursor is how far a projector has followed the log.
type cursor struct {
	checkpoint
	reached events.LogPosition // at the checkpoint or after it, without an event of the projection's in between
	parked  map[string]bool    // the streams that it no longer follows
	passed  int                // events since the checkpoint
	written time.Time          // when the checkpoint was
}

// apply commits the events of a page that the projection follows. Where one cannot be applied, each is committed by
// itself, and the streams of those that cannot be applied are parked.
func (s *subscriber) apply(ctx context.Context, messages chan<- *message.Message, page events.Page, p *cursor) error {
	list := make([]events.Recorded, 0, len(page.Events))
	own := false // also where the stream is parked: commands wait for the page, and a rebuild may have taken up the stream
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

// commit delivers events and commits what their handler queued together with the checkpoint. A rebuild gives way, but
// for the time in which it stops the live projector.
func (s *subscriber) commit(
	ctx context.Context, messages chan<- *message.Message, list []events.Recorded, next events.LogPosition, p *cursor,
) error {
	if s.build == nil || s.build.conn != nil {
		return s.commitNow(ctx, messages, list, next, p)
	}
	return s.traffic.giveWay(ctx, func() error { return s.commitNow(ctx, messages, list, next, p) })
}

func (s *subscriber) commitNow(
	ctx context.Context, messages chan<- *message.Message, list []events.Recorded, next events.LogPosition, p *cursor,
) (err error) {
	defer func() {
		if err != nil {
			s.model = nil // it may hold what was not committed
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

// moveCheckpoint queues the move of the checkpoint from where this projector left it, and notifies the nodes that wait
// for it. The tables must be those that it knows: after a rebuild the checkpoint may stand at the same position, with
// other streams parked. And streams that were parked may be retried.
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
					return errMoved // and what becomes of the rest says nothing of the events: they have been applied by another
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

// deliver sends a message for some events and waits for its Ack.
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
