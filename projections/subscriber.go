package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"flagledger/events"
)

// subscriber is a Watermill subscriber over the event store, for one projection. It hands on one message per event and waits for its
// Ack before the next; all that the handler queued for the events of a page commits in one transaction with the checkpoint.
type subscriber struct {
	projection Projection
	schema     string
	url        string // of the database of the read models
	store      events.Store
	log        *slog.Logger
	// committed is told each position that the read model has reached.
	committed func(events.Position)
	// build, if set, makes the subscriber fill new tables from the beginning of the log, and end once they have been switched to.
	build *build
	wait  time.Duration // before the next attempt, when something breaks
}

const (
	lockInterval = 500 * time.Millisecond // between attempts to take over from another node
	retryWait    = 50 * time.Millisecond
	maxRetryWait = 2 * time.Second
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
		s.wait = retryWait
		for ctx.Err() == nil {
			err := s.run(ctx, messages)
			if s.build != nil {
				s.build.err = err
				return
			}
			if ctx.Err() != nil {
				return
			}
			if !errors.Is(err, errMoved) {
				s.log.Error("projection stopped; it tries again", "projection", s.projection.Name, "in", s.wait, "err", err)
			}
			_ = pause(ctx, s.wait)
			s.wait = min(2*s.wait, maxRetryWait)
		}
	}()
	return messages, nil
}

// Close implements message.Subscriber. A subscriber ends with its context.
func (s *subscriber) Close() error { return nil }

// run follows the log over one connection until something breaks.
func (s *subscriber) run(ctx context.Context, messages chan<- *message.Message) error {
	conn, err := connect(ctx, s.url, s.schema)
	if err != nil {
		return err
	}
	defer disconnect(conn)
	if err := s.takeOver(ctx, conn); err != nil {
		return err
	}
	if s.build != nil {
		defer s.build.release()
		if err := s.projection.create(ctx, conn, s.schema, s.store.Engine()); err != nil {
			return err
		}
	}
	c, err := s.projection.readCheckpoint(ctx, conn, s.schema, s.store.Engine())
	if errors.Is(err, errNoReadModel) {
		// Nothing can be read yet, or no longer: what is built now is switched to when it is whole.
		s.log.Info("building a read model", "projection", s.projection.Name, "version", s.projection.Version)
		if err := s.builder().run(ctx, messages); err != nil {
			return err
		}
		c, err = s.projection.readCheckpoint(ctx, conn, s.schema, s.store.Engine())
	}
	if err != nil {
		return err
	}
	parked, err := s.projection.parked(ctx, conn, s.schema)
	if err != nil {
		return err
	}
	s.committed(c.position)
	for page, err := range s.store.Subscribe(ctx, c.position) {
		if err != nil {
			return err
		}
		if err := s.apply(ctx, conn, messages, page, &c, parked); err != nil {
			return err
		}
		s.committed(c.position)
		s.wait = retryWait
		if s.build != nil && page.Live {
			if done, err := s.build.finish(ctx, c.position); done || err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// takeOver waits until no other process carries on the projection in this schema. In between it holds no snapshot that would keep vacuum back.
func (s *subscriber) takeOver(ctx context.Context, conn *pgx.Conn) error {
	for {
		locked, err := s.projection.lock(ctx, conn, s.schema)
		if locked || err != nil {
			return err
		}
		if err := pause(ctx, lockInterval); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// apply commits a page. Where an event of it cannot be applied, the page is gone through event by event and that event's stream is parked, so that
// all others flow on.
func (s *subscriber) apply(ctx context.Context, conn *pgx.Conn, messages chan<- *message.Message, page events.Page, c *checkpoint, parked map[string]bool) error {
	list := make([]events.Recorded, 0, len(page.Events))
	for _, e := range page.Events {
		if s.projection.follows(e.Name) && !parked[e.Stream] {
			list = append(list, e)
		}
	}
	if page.Next == c.position {
		return nil
	}
	err := s.commit(ctx, conn, messages, list, page.Next, c)
	if !inapplicable(err) {
		return err
	}
	for _, e := range list {
		if parked[e.Stream] {
			continue
		}
		err := s.commit(ctx, conn, messages, []events.Recorded{e}, e.Position, c)
		if inapplicable(err) {
			err = s.park(ctx, conn, e, c, err)
			parked[e.Stream] = true
		}
		if err != nil {
			return err
		}
	}
	return s.commit(ctx, conn, messages, nil, page.Next, c)
}

// commit hands on events and commits what their handler queued together with the checkpoint.
func (s *subscriber) commit(ctx context.Context, conn *pgx.Conn, messages chan<- *message.Message, list []events.Recorded, next events.Position, c *checkpoint) error {
	batch := &pgx.Batch{}
	s.moveCheckpoint(batch, next, c)
	for _, e := range list {
		if err := handOver(ctx, messages, &work{event: e, batch: batch, start: batch.Len()}); err != nil {
			return err
		}
	}
	if err := s.flush(ctx, conn, batch); err != nil {
		return err
	}
	c.position = next
	return nil
}

// moveCheckpoint queues the move of the checkpoint from where this projector left it, beside the tables that it knows: those of a rebuild may stand at the
// same position, with other streams parked. The nodes that wait for it are notified.
func (s *subscriber) moveCheckpoint(batch *pgx.Batch, next events.Position, c *checkpoint) {
	batch.Queue(`update checkpoints set commit = $2, prepare = $3, updated_at = now()
			where projection = $1 and version = $4 and commit = $5 and prepare = $6 and to_regclass($7)::oid = $8`,
		s.projection.Name, next.Commit, next.Prepare, c.version, c.position.Commit, c.position.Prepare, s.schema+"."+s.projection.Tables[0], c.table)
	if s.schema == liveSchema {
		batch.Queue(`select pg_notify('`+progressChannel+`', $1)`, formatProgress(s.projection.Name, next))
	}
}

func (s *subscriber) flush(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		results := tx.SendBatch(ctx, batch)
		moved, err := results.Exec()
		if err == nil && moved.RowsAffected() != 1 {
			_ = results.Close() // what becomes of the rest says nothing of the events: they have been applied by another
			return errMoved
		}
		return errors.Join(err, results.Close())
	})
}

// handOver sends a message for an event and waits for its Ack.
func handOver(ctx context.Context, messages chan<- *message.Message, w *work) error {
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
