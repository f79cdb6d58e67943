package eventstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"flagledger/events"
)

// Append implements events.Store; ErrTooLarge is also for events that together exceed MaxEventBytes, the limit of a server with default settings. The
// client gives up after ten seconds, or the connection string's defaultDeadline, even when ctx does not end.
func (s *Store) Append(ctx context.Context, stream string, expected events.Revision, batch []events.Event) (events.Position, error) {
	if len(batch) == 0 {
		return events.Position{}, errors.New("append without events")
	}
	list := make([]esdb.EventData, 0, len(batch))
	size := 0
	for _, e := range batch {
		stored, err := events.Encode(e)
		if err != nil {
			return events.Position{}, err
		}
		if size += len(stored.Data) + len(stored.Metadata); size > events.MaxEventBytes {
			return events.Position{}, fmt.Errorf("%w: the events of one append together", events.ErrTooLarge)
		}
		list = append(list, toEventData(stored))
	}
	// Their revisions count from 0. Without an expected one, the client would append at any.
	var at esdb.ExpectedRevision = esdb.NoStream{}
	if expected > 0 {
		at = esdb.Revision(uint64(expected) - 1)
	}
	result, err := s.send(ctx, stream, at, list)
	if e, ok := errors.AsType[*esdb.Error](err); ok && e.Code() == esdb.ErrorCodeWrongExpectedVersion {
		return s.applied(ctx, stream, expected, list)
	}
	if err != nil {
		return events.Position{}, fmt.Errorf("append to %s: %w", stream, err)
	}
	position := events.Position{Commit: result.CommitPosition, Prepare: result.PreparePosition}
	if position == (events.Position{}) { // the answer to a repeated append may come without it
		return s.applied(ctx, stream, expected, list)
	}
	s.end.appended(position)
	return position, nil
}

// send makes an append; where a node does not answer for some time, it makes it once more on a new connection, which looks for the leader again, and
// the first answer counts. Ids and expected revision are the same, so it is applied once.
func (s *Store) send(ctx context.Context, stream string, at esdb.ExpectedRevision, list []esdb.EventData) (*esdb.WriteResult, error) {
	type answer struct {
		result *esdb.WriteResult
		err    error
	}
	c, err := s.acquireSoon(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, 2)
	// The client may hang for as long as there is no server, so it runs in a goroutine that the caller leaves behind when ctx ends.
	appendOn := func(c *connection) {
		// The client reads metadata that gRPC writes when the context ends, so the call ends by its own deadline alone.
		result, err := c.client.AppendToStream(context.WithoutCancel(ctx), stream, esdb.AppendToStreamOptions{ExpectedRevision: at}, list...)
		s.release(c, err)
		answers <- answer{result, s.classify(ctx, err)}
	}
	go appendOn(c)
	silence := time.NewTimer(s.patience)
	defer silence.Stop()
	for waiting := 1; ; {
		select {
		case a := <-answers:
			if waiting--; waiting == 0 || !errors.Is(a.err, events.ErrUnavailable) {
				return a.result, a.err
			}
		case <-silence.C:
			s.retireSilent(c)
			waiting++
			go func() {
				c, err := s.acquire(ctx)
				if err != nil {
					answers <- answer{err: err}
					return
				}
				appendOn(c)
			}()
		case <-ctx.Done():
			return nil, unavailable(ctx.Err())
		}
	}
}

// applied returns the position of the last event of a list when the list stands right after a revision; else ErrConflict.
func (s *Store) applied(ctx context.Context, stream string, expected events.Revision, list []esdb.EventData) (events.Position, error) {
	found := 0
	for e, err := range s.read(ctx, streamFrom(stream, expected+1, uint64(len(list)))) {
		if err != nil {
			return events.Position{}, fmt.Errorf("read %s: %w", stream, err)
		}
		if e.EventID != list[found].EventID || e.EventNumber != uint64(expected)+uint64(found) {
			break
		}
		if found++; found == len(list) {
			return at(e.Position), nil
		}
	}
	return events.Position{}, events.ErrConflict
}
