package eventstore

import (
	"context"
	"errors"
	"fmt"

	"flagledger/events"
)

// first caches the first event of ours.
type first struct {
	looking chan struct{} // full during the search: a lock of the fields below
	event   events.Recorded
	scanned events.Position // no event of ours comes before
}

// Log implements events.Store. It searches the first event once; if ctx ends, the next call continues. Later calls
// only check that the event is still at its place.
func (s *Store) Log(ctx context.Context) (events.Log, error) {
	id, err := s.logID(ctx)
	if err != nil {
		return events.Log{}, fmt.Errorf("identify the log: %w", err)
	}
	end, err := s.tail(ctx)
	if err != nil {
		return events.Log{}, err
	}
	return events.Log{Engine: s.Engine(), ID: id, End: end}, nil
}

func (s *Store) logID(ctx context.Context) (string, error) {
	select {
	case s.first.looking <- struct{}{}:
		defer func() { <-s.first.looking }()
	case <-ctx.Done():
		return "", unavailable(ctx.Err())
	}
	if known := s.first.event; known.Stream != "" {
		for e, err := range s.read(ctx, streamFrom(known.Stream, known.Revision, 1)) {
			if err != nil {
				return "", err
			}
			if e.EventID == known.ID {
				return events.LogID(known), nil
			}
		}
		s.first.event, s.first.scanned = events.Recorded{}, events.Position{} // the server holds a different log than before
	}
	id, err := s.findFirst(ctx)
	if errors.Is(err, events.ErrPastEnd) { // at the payment provider
		s.first.scanned = events.Position{}
		id, err = s.findFirst(ctx)
	}
	return id, err
}

// findFirst searches the first event of ours from the end of the last search. The ID is empty if there is none.
func (s *Store) findFirst(ctx context.Context) (id string, err error) {
	for page, err := range s.Subscribe(ctx, s.first.scanned) {
		if err != nil {
			return "", err
		}
		if len(page.Events) > 0 {
			s.first.event = page.Events[0]
			return events.LogID(s.first.event), nil
		}
		if s.first.scanned = page.Next; page.Live {
			break
		}
	}
	return "", nil
}
