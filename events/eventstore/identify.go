package eventstore

import (
	"context"
	"fmt"
	"sync"

	"flagledger/events"
)

// first is what a Store knows of the first event of ours.
type first struct {
	mu    sync.Mutex // held while the event is looked for
	event events.Recorded
}

// Log implements events.Store. It looks for the first event once; from then on it only checks that this event still stands where it was.
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
	s.first.mu.Lock()
	defer s.first.mu.Unlock()
	if known := s.first.event; known.Stream != "" {
		for e, err := range s.read(ctx, streamFrom(known.Stream, known.Revision, 1)) {
			if err != nil {
				return "", err
			}
			if e.EventID == known.ID {
				return events.LogID(known), nil
			}
		}
		s.first.event = events.Recorded{} // the server holds another log than before
	}
	// A log without an event of ours may be a long one of others. Its end is known without reading it again.
	if head, err := s.Head(ctx); err != nil || head == (events.Position{}) {
		return "", err
	}
	for page, err := range s.Subscribe(ctx, events.Position{}) {
		if err != nil {
			return "", err
		}
		if len(page.Events) > 0 {
			s.first.event = page.Events[0]
			return events.LogID(s.first.event), nil
		}
		if page.Live {
			break
		}
	}
	return "", nil
}
