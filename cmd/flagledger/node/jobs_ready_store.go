package node

import (
	"context"
	"fmt"

	"flagledger/events"
	"flagledger/projections/reactions"
)

// jobsReadyStore appends nothing before reactions have begun in the log: no jobs are made from what lies before their
// first checkpoint.
type jobsReadyStore struct {
	events.Store
	reactions *reactions.Reactions
}

// Append implements events.Store.
func (s jobsReadyStore) Append(
	ctx context.Context, stream string, expected events.Revision, batch []events.Event,
) (events.Appended, error) {
	if err := s.reactions.Begin(ctx); err != nil {
		return events.Appended{}, fmt.Errorf("%w: reactions cannot begin: %w", events.ErrUnavailable, err)
	}
	return s.Store.Append(ctx, stream, expected, batch)
}
