package eventstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"flagledger/events"
)

// Append implements events.Store. The events of one append together must not exceed MaxEventBytes, for that is what a server takes unless
// configured otherwise; else ErrTooLarge. The client gives up after ten seconds, or its defaultDeadline, even where ctx does not end.
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
	// Their revisions count from 0. Without an expected one, the client would take any.
	var at esdb.ExpectedRevision = esdb.NoStream{}
	if expected > 0 {
		at = esdb.Revision(uint64(expected) - 1)
	}
	result, err := call(ctx, s, func(client *esdb.Client) (*esdb.WriteResult, error) {
		return client.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: at}, list...)
	})
	if e, ok := errors.AsType[*esdb.Error](err); ok && e.Code() == esdb.ErrorCodeWrongExpectedVersion {
		return s.applied(ctx, stream, expected, list)
	}
	if err != nil {
		return events.Position{}, fmt.Errorf("append to %s: %w", stream, err)
	}
	position := events.Position{Commit: result.CommitPosition, Prepare: result.PreparePosition}
	if position == (events.Position{}) { // the server may leave it out of its answer to a repeated append
		return s.applied(ctx, stream, expected, list)
	}
	s.end.appended(position)
	return position, nil
}

// applied returns the position of the last of events that stand right after a revision, in that order; else ErrConflict.
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
