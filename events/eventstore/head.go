package eventstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"flagledger/events"
)

// end caches the end of the log: all up to seen is known, and the last event of ours before that is at last.
type end struct {
	mu         sync.Mutex
	last, seen events.Position
}

// appended records the position of an event of ours.
func (e *end) appended(p events.Position) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.Compare(e.seen) > 0 {
		e.last, e.seen = p, p
	}
}

// read records that the log was read from after to through. The last event of ours in between is at last; if last is
// not past after, there is none.
func (e *end) read(after, last, through events.Position) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if through.Compare(e.seen) <= 0 {
		return
	}
	switch {
	case last.Compare(after) > 0:
		e.last, e.seen = last, through
	case after.Compare(e.seen) <= 0:
		e.seen = through
	}
}

func (e *end) known() (last, seen events.Position) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last, e.seen
}

// Head implements events.Store. The client cannot filter reads, so this reads the log backwards to the last event of
// ours, or to what appends and subscriptions have seen.
func (s *Store) Head(ctx context.Context) (events.Position, error) {
	last, seen := s.end.known()
	through := seen
	for e, err := range s.read(ctx, allBackwards(math.MaxInt64)) {
		if err != nil {
			return events.Position{}, fmt.Errorf("read back from the end of the log: %w", err)
		}
		p := at(e.Position)
		if p.Compare(through) > 0 {
			through = p
		}
		if p.Compare(seen) <= 0 {
			break
		}
		if s.ours(e.StreamID) {
			last = p
			break
		}
	}
	s.end.read(seen, last, through)
	return last, nil
}

// Watermark returns this node's clock, because EventStoreDB reports its time only with events. It does not keep
// events.Store's promise: an event recorded earlier may still come, by as much as the clocks differ and an append
// takes.
func (s *Store) Watermark(context.Context, time.Time) (time.Time, error) {
	return time.Now().UTC().Truncate(time.Microsecond), nil
}

// Clock implements events.Store with the clock of this node, as Watermark does.
func (s *Store) Clock(ctx context.Context) (now, last time.Time, err error) {
	for e, err := range s.read(ctx, allBackwards(math.MaxInt64)) {
		if err != nil {
			return now, last, fmt.Errorf("read back from the end of the log: %w", err)
		}
		if s.ours(e.StreamID) {
			last = fromRecorded(e).At
			break
		}
	}
	return time.Now().UTC().Truncate(time.Microsecond), last, nil
}

// tail returns the position of the last event in the log, also of others.
func (s *Store) tail(ctx context.Context) (events.Position, error) {
	for e, err := range s.read(ctx, allBackwards(1)) {
		if err != nil {
			return events.Position{}, fmt.Errorf("read the end of the log: %w", err)
		}
		return at(e.Position), nil
	}
	return events.Position{}, nil
}

func (s *Store) ours(stream string) bool {
	return slices.ContainsFunc(s.prefixes, func(prefix string) bool { return strings.HasPrefix(stream, prefix) })
}
