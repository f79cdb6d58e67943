package eventstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"flagledger/events"
)

// Append implements events.Store; it returns ErrTooLarge also if all events together exceed MaxEventBytes, the default
// limit of a server. The client gives up after ten seconds, or the connection string's defaultDeadline, even before
// ctx ends.
func (s *Store) Append(
	ctx context.Context, stream string, expected events.Revision, batch []events.Event,
) (events.Appended, error) {
	if len(batch) == 0 {
		return events.Appended{}, errors.New("append without events")
	}
	all := make([]events.Stored, 0, len(batch))
	list := make([]esdb.EventData, 0, len(batch))
	size := 0
	for _, e := range batch {
		stored, err := events.Encode(e)
		if err != nil {
			return events.Appended{}, err
		}
		if stored.At.After(latest(time.Now().Add(events.MaxAhead), stored.AcceptUntil)) {
			return events.Appended{}, events.ErrAhead
		}
		if size += len(stored.Data) + len(stored.Metadata); size > events.MaxEventBytes {
			return events.Appended{}, fmt.Errorf("%w: the events of one append together", events.ErrTooLarge)
		}
		all, list = append(all, stored), append(list, toEventData(stored))
	}
	// Revisions in the server count from 0. Without an expected one, the client would append at any.
	var at esdb.ExpectedRevision = esdb.NoStream{}
	if expected > 0 {
		at = esdb.Revision(uint64(expected) - 1)
	}
	result, err := s.send(ctx, stream, at, list)
	if e, ok := errors.AsType[*esdb.Error](err); ok && e.Code() == esdb.ErrorCodeWrongExpectedVersion {
		return s.applied(ctx, stream, expected, all)
	}
	if err != nil {
		return events.Appended{}, fmt.Errorf("append to %s: %w", stream, err)
	}
	s.end.appended(events.Position{Commit: result.CommitPosition, Prepare: result.PreparePosition})
	appended, err := s.applied(ctx, stream, expected, all)
	if errors.Is(err, events.ErrConflict) { // a node lags behind the leader
		err = fmt.Errorf("%w: %s cannot be read yet after an append", events.ErrUnavailable, stream)
	}
	return appended, err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// send makes an append. If a node does not answer for some time, it repeats the append on a new connection, which
// looks for the leader again, and takes the first answer. With the same ids and expected revision it is applied once.
func (s *Store) send(
	ctx context.Context, stream string, at esdb.ExpectedRevision, list []esdb.EventData,
) (*esdb.WriteResult, error) {
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
	// The client may hang while there is no server, so it runs in a goroutine that outlives ctx.
	appendOn := func(c *connection) {
		// The client reads metadata that gRPC writes when the context ends, so the call ends only by its own deadline.
		result, err := c.client.AppendToStream(
			context.WithoutCancel(ctx),
			stream,
			esdb.AppendToStreamOptions{ExpectedRevision: at},
			list...)
		s.release(c, err)
		answers <- answer{result, s.classify(ctx, err)}
	}
	go appendOn(c)
	silence := time.NewTimer(s.answerTimeout)
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

// applied reads a list's events if they directly follow a revision; otherwise it returns ErrConflict. The answer to an
// append does not say when it was recorded nor, if it was repeated, where.
func (s *Store) applied(
	ctx context.Context, stream string, expected events.Revision, list []events.Stored,
) (events.Appended, error) {
	var times []time.Time
	for e, err := range s.read(ctx, streamFrom(stream, expected+1, uint64(len(list)))) {
		if err != nil {
			return events.Appended{}, fmt.Errorf("read %s: %w", stream, err)
		}
		if found := len(times); e.EventID != list[found].ID || e.EventNumber != uint64(expected)+uint64(found) {
			break
		}
		if times = append(times, list[len(times)].RecordedTime(recordedAt(e))); len(times) == len(list) {
			return events.Appended{Position: at(e.Position), Recorded: times}, nil
		}
	}
	return events.Appended{}, events.ErrConflict
}
