package eventstore

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"flagledger/events"
)

// readAhead is the number of events that are read ahead of the caller.
const readAhead = 8

// Read implements events.Store. A stream that was deleted for good is an error.
func (s *Store) Read(ctx context.Context, stream string, from events.Revision) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for e, err := range s.read(ctx, streamFrom(stream, from, math.MaxInt64)) {
			if err != nil {
				yield(events.Recorded{}, err)
				return
			}
			if !yield(fromRecorded(e), nil) {
				return
			}
		}
	}
}

// Find implements events.Store. The server has no index of ids, so it reads the stream backwards.
func (s *Store) Find(ctx context.Context, stream string, id uuid.UUID) (events.Revision, error) {
	for e, err := range s.read(ctx, backwards(stream)) {
		if err != nil {
			return 0, err
		}
		if e.EventID == id {
			return events.Revision(e.EventNumber + 1), nil
		}
	}
	return 0, nil
}

// opener begins a read on a client.
type opener func(context.Context, *esdb.Client) (*esdb.ReadStream, error)

// streamFrom reads a stream from a revision of ours, which count from 1.
func streamFrom(stream string, from events.Revision, count uint64) opener {
	return func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
		return client.ReadStream(ctx, stream, esdb.ReadStreamOptions{From: esdb.Revision(uint64(max(from, 1)) - 1)}, count)
	}
}

// backwards reads a stream from its end.
func backwards(stream string) opener {
	return func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
		return client.ReadStream(ctx, stream, esdb.ReadStreamOptions{Direction: esdb.Backwards, From: esdb.End{}},
			math.MaxInt64)
	}
}

// allBackwards reads the whole log from its end.
func allBackwards(count uint64) opener {
	return func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
		return client.ReadAll(ctx, esdb.ReadAllOptions{Direction: esdb.Backwards, From: esdb.End{}}, count)
	}
}

// read yields the events of a read, none if the stream does not exist, until ctx ends. If the first event does not come
// for some time, it starts again on a new connection; if a later one does not come, it ends with events.ErrUnavailable.
func (s *Store) read(ctx context.Context, open opener) iter.Seq2[*esdb.RecordedEvent, error] {
	return func(yield func(*esdb.RecordedEvent, error) bool) {
		c, err := s.acquireSoon(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		list, ended, stop := s.start(ctx, c, open)
		defer func() { stop() }()
		silence := time.NewTimer(s.answerTimeout)
		defer silence.Stop()
		for begun := false; ; {
			select {
			case e, ok := <-list:
				if !ok {
					if err := <-ended; err != nil {
						yield(nil, s.classify(ctx, err))
					}
					return
				}
				if !yield(e, nil) {
					return
				}
				begun = true
				silence.Reset(s.answerTimeout)
			case <-silence.C:
				s.retireSilent(c)
				if begun {
					yield(nil, unavailable(errSilent))
					return
				}
				stop()
				if c, err = s.acquire(ctx); err != nil {
					yield(nil, err)
					return
				}
				list, ended, stop = s.start(ctx, c, open)
			case <-ctx.Done():
				yield(nil, unavailable(ctx.Err()))
				return
			}
		}
	}
}

var errSilent = errors.New("the server does not answer")

// start begins a read in its own goroutine, because the client may hang while there is no server. It releases the
// connection.
func (s *Store) start(
	ctx context.Context, c *connection, open opener,
) (list chan *esdb.RecordedEvent, ended chan error, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	list, ended = make(chan *esdb.RecordedEvent, readAhead), make(chan error, 1)
	go func() {
		err := receive(ctx, c.client, open, list)
		s.release(c, err)
		ended <- err
		close(list)
	}()
	return list, ended, stop
}

// receive sends the events of a read to list, until the read or ctx ends.
func receive(ctx context.Context, client *esdb.Client, open opener, list chan<- *esdb.RecordedEvent) error {
	stream, err := open(ctx, client)
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		e, err := stream.Recv()
		if e, ok := errors.AsType[*esdb.Error](err); ok && e.Code() == esdb.ErrorCodeResourceNotFound {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case list <- e.OriginalEvent():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
