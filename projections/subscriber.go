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

	"flagledger/events"
)

// process is what the projections that one process carries on share.
type process struct {
	store     events.Store
	log       *slog.Logger
	feed      *feed
	session   *session
	writers   *writers
	switching sync.Mutex // held by a rebuild that is about to switch: it keeps one of the few connections
	large     sync.Mutex // held while one takes in a large event, so that this keeps one processor busy and not all
}

// largeEvent is the size from which an event is large, in bytes of its JSON.
const largeEvent = 32 << 10

// subscriber is a Watermill subscriber over the feed, for one projection: it sends a message for each event and waits for its Ack before the next.
// What the handler queued for the events of a page is committed with the checkpoint in one transaction.
type subscriber struct {
	*process
	projection Projection
	schema     string
	// committed is told each checkpoint that is written, resumed each that is found.
	committed, resumed func(events.Checkpoint)
	// failed, if set, is told whether the projection has failed or goes on.
	failed func(bool)
	// build, if set, makes the subscriber fill new tables from the beginning of the log, and end once they have been switched to.
	build    *build
	follower *follower
	retry    interface{ Reset() }
}

// A page without events of the projection costs no transaction. The checkpoint is moved past such pages from time to time, so that a restart need not read
// much again.
const (
	idleInterval = 5 * time.Second
	idleEvents   = 1000
	// buildInterval is the time between attempts to switch to new tables while nothing happens.
	buildInterval = 50 * time.Millisecond
)

var (
	// errNack says that the handler gave an event back.
	errNack = errors.New("the event could not be applied")
	// errMoved says that the checkpoint is not where this projector left it.
	errMoved = errors.New("the checkpoint was moved by another")
)

// work is what a message carries in its context: the event and the batch that the handler queues its statements in.
type work struct {
	event events.Recorded
	batch *pgx.Batch
	start int // the length of the batch before this event
	err   error
}

type workKey struct{}

// Subscribe implements message.Subscriber. The topic is the projection's name and has no further meaning.
func (s *subscriber) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	messages := make(chan *message.Message)
	go func() {
		defer close(messages)
		retry := newRetry()
		s.retry = retry
		for ctx.Err() == nil {
			err := s.run(ctx, messages)
			if s.build != nil {
				s.build.err = err
				return
			}
			if ctx.Err() != nil {
				return
			}
			s.tell(!errors.Is(err, errLost)) // then another process may carry it on
			wait := retry.NextBackOff()
			if !errors.Is(err, errMoved) && !errors.Is(err, errLost) && errorCode(err) != deadlock {
				s.log.Error("projection stopped; it tries again", "projection", s.projection.Name, "in", wait, "err", err)
			}
			_ = pause(ctx, wait)
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
	held, release, err := s.session.hold(ctx, s.schema+"."+s.projection.Name, s.follower.expect)
	if err != nil {
		return err
	}
	defer release()
	if err = s.follow(held, messages); held.Err() != nil {
		return context.Cause(held)
	}
	return err
}

func (s *subscriber) follow(ctx context.Context, messages chan<- *message.Message) error {
	if s.build != nil {
		defer s.build.release()
		err := s.writers.use(ctx, s.schema, func(conn *pgx.Conn) error { return s.projection.create(ctx, conn, s.schema, s.store.Engine()) })
		if err != nil {
			return err
		}
	}
	c, parked, err := s.resume(ctx)
	if errors.Is(err, errAnotherLog) {
		s.log.Warn("the event store holds another log than the read model was made from: it is rebuilt", "projection", s.projection.Name,
			"engine", s.store.Engine(), "engine before", c.Engine, "position before", c.Position)
	}
	if errors.Is(err, errNoReadModel) || errors.Is(err, errAnotherLog) {
		// What is built now is switched to when it is whole.
		s.log.Info("building a read model", "projection", s.projection.Name, "version", s.projection.Version)
		if err := s.builder(s.follower).run(ctx, messages); err != nil {
			return err
		}
		s.follower.building = false
		c, parked, err = s.resume(ctx)
	}
	if err != nil {
		return err
	}
	s.resumed(c.Checkpoint)
	p := place{checkpoint: c, reached: c.Checkpoint, written: time.Now()}
	for {
		page, err := s.follower.next(ctx, p.reached.Position, s.interval())
		if err != nil {
			return err
		}
		if s.build == nil && page.Next == p.reached.Position && !page.Live {
			if err := s.confirm(ctx, p.checkpoint); err != nil {
				return err
			}
		}
		if err := s.apply(ctx, messages, page, &p, parked); err != nil {
			return err
		}
		s.retry.Reset()
		s.tell(false)
		if s.build == nil {
			continue
		}
		s.build.report(p.reached.Position)
		if page.Live {
			if done, err := s.finish(ctx, &p); done || err != nil {
				return err
			}
		}
	}
}

func (s *subscriber) interval() time.Duration {
	if s.build != nil {
		return buildInterval
	}
	return idleInterval
}

// resume finds where the read model stands, and the streams that it no longer follows.
func (s *subscriber) resume(ctx context.Context) (c checkpoint, parked map[string]bool, err error) {
	err = s.writers.use(ctx, s.schema, func(conn *pgx.Conn) error {
		if c, err = s.projection.resume(ctx, conn, s.schema, s.store); err != nil {
			return err
		}
		parked, err = s.projection.parked(ctx, conn, s.schema)
		return err
	})
	return c, parked, err
}

// confirm returns errMoved where the checkpoint is not the given one. It is asked when nothing has come for a while although the end of the log is not
// reached: a checkpoint that was found past the end may have been replaced by a rebuild.
func (s *subscriber) confirm(ctx context.Context, c checkpoint) error {
	now, _, err := s.resume(ctx)
	if err == nil && now != c {
		err = errMoved
	}
	return err
}

// place is where a projection stands in the log.
type place struct {
	checkpoint
	reached events.Checkpoint // at the checkpoint or after it, without an event of the projection's in between
	passed  int               // events since the checkpoint
	written time.Time         // when the checkpoint was
}

// apply commits the events of a page that the projection follows. Where one cannot be applied, each is committed by itself, and the streams of those that
// cannot be applied are parked.
func (s *subscriber) apply(ctx context.Context, messages chan<- *message.Message, page events.Page, p *place, parked map[string]bool) error {
	list := make([]events.Recorded, 0, len(page.Events))
	own := false // also where the stream is parked: commands wait for the page, and a rebuild may have taken up the stream
	for _, e := range page.Events {
		if s.projection.follows(e.Name) {
			own = true
			if !parked[e.Stream] {
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
		if parked[e.Stream] {
			continue
		}
		err := s.commit(ctx, messages, []events.Recorded{e}, p.After([]events.Recorded{e}, e.Position), p)
		if inapplicable(err) {
			err = s.park(ctx, e, p, err)
			parked[e.Stream] = true
		}
		if err != nil {
			return err
		}
	}
	return s.commit(ctx, messages, nil, p.reached, p)
}

// commit delivers events and commits what their handler queued together with the checkpoint.
func (s *subscriber) commit(ctx context.Context, messages chan<- *message.Message, list []events.Recorded, next events.Checkpoint, p *place) error {
	batch := &pgx.Batch{}
	s.moveCheckpoint(batch, next, p)
	for _, e := range list {
		if err := deliver(ctx, messages, &work{event: e, batch: batch, start: batch.Len()}); err != nil {
			return err
		}
	}
	return s.flush(ctx, batch, next, p)
}

// moveCheckpoint queues the move of the checkpoint from where this projector left it, and notifies the nodes that wait for it. The tables must be those that
// it knows: after a rebuild the checkpoint may stand at the same position, with other streams parked.
func (s *subscriber) moveCheckpoint(batch *pgx.Batch, next events.Checkpoint, p *place) {
	batch.Queue(`update checkpoints set commit = $2, prepare = $3, updated_at = now(), log = $9, last_event = $10
			where projection = $1 and version = $4 and commit = $5 and prepare = $6 and to_regclass($7)::oid = $8`,
		s.projection.Name, next.Position.Commit, next.Position.Prepare, p.version, p.Position.Commit, p.Position.Prepare, s.schema+"."+s.projection.Tables[0], p.table, next.LogID, next.Last)
	if s.schema == liveSchema {
		batch.Queue(`select pg_notify('`+progressChannel+`', $1)`, formatProgress(s.projection.Name, next.LogID, next.Position))
	}
}

// flush commits a batch that moves the checkpoint.
func (s *subscriber) flush(ctx context.Context, batch *pgx.Batch, next events.Checkpoint, p *place) error {
	err := s.writers.use(ctx, s.schema, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			results := tx.SendBatch(ctx, batch)
			moved, err := results.Exec()
			if err == nil && moved.RowsAffected() != 1 {
				_ = results.Close() // what becomes of the rest says nothing of the events: they have been applied by another
				return errMoved
			}
			return errors.Join(err, results.Close())
		})
	})
	if err != nil {
		return err
	}
	p.Checkpoint, p.passed, p.written = next, 0, time.Now()
	s.committed(p.Checkpoint)
	return nil
}

// deliver sends a message for an event and waits for its Ack.
func deliver(ctx context.Context, messages chan<- *message.Message, w *work) error {
	m := message.NewMessageWithContext(context.WithValue(ctx, workKey{}, w), w.event.ID.String(), nil)
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
