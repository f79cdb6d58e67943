package queries

import (
	"context"
	"errors"
	"fmt"

	"flagledger/events"
)

// SegmentSalts returns the ids of the salts that the facts of a segment's key name, of all its lives: those that are in
// use, and those that its newest SegmentForgotten has ended.
func (q *Queries) SegmentSalts(ctx context.Context, tenantID, key string) (named, forgotten []string, err error) {
	stream := events.SegmentStream(tenantID, key)
	for r, err := range q.store.Read(ctx, stream, 0) {
		if errors.Is(err, events.ErrUnavailable) {
			return nil, nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("stream %s: %w", stream, err)
		}
		switch fact := r.Fact.(type) {
		case events.SegmentCreated:
			named = append(named, fact.SaltID)
		case events.SegmentForgotten:
			named, forgotten = []string{fact.SaltID}, append(forgotten, named...)
		}
	}
	return named, forgotten, nil
}
