package eventstore

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"flagledger/events"
)

// readAhead is how many events wait, at most, between the client and who reads.
const readAhead = 64

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

// opener begins a read on a client.
type opener func(context.Context, *esdb.Client) (*esdb.ReadStream, error)

// streamFrom reads a stream from a revision of ours, which count from 1.
func streamFrom(stream string, from events.Revision, count uint64) opener {
	return func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
		return client.ReadStream(ctx, stream, esdb.ReadStreamOptions{From: esdb.Revision(uint64(max(from, 1)) - 1)}, count)
	}
}

// allBackwards reads the whole log from its end.
func allBackwards(count uint64) opener {
	return func(ctx context.Context, client *esdb.Client) (*esdb.ReadStream, error) {
		return client.ReadAll(ctx, esdb.ReadAllOptions{Direction: esdb.Backwards, From: esdb.End{}}, count)
	}
}

// read yields the events of a read; those of a stream that does not exist are none. Like call, it waits no longer than until ctx ends.
func (s *Store) read(ctx context.Context, open opener) iter.Seq2[*esdb.RecordedEvent, error] {
	return func(yield func(*esdb.RecordedEvent, error) bool) {
		c, err := s.acquireSoon(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		reading, cancel := context.WithCancel(ctx)
		defer cancel()
		list := make(chan *esdb.RecordedEvent, readAhead)
		ended := make(chan error, 1)
		go func() {
			err := receive(reading, c.client, open, list)
			s.release(c, err)
			ended <- err
			close(list)
		}()
		for {
			select {
			case e, ok := <-list:
				if !ok {
					if err := <-ended; err != nil {
						yield(nil, classify(ctx, err))
					}
					return
				}
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				yield(nil, unavailable(ctx.Err()))
				return
			}
		}
	}
}

// receive sends the events of a read to list, until it or ctx ends.
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
