package node

import (
	"context"
	"fmt"

	"flagledger/events"
)

// jobsReadyStore refuses appends before reactions have begun in the log: facts before their first checkpoint cause no
// jobs.
type jobsReadyStore struct {
	events.Store
	begin func(context.Context) error
}

// Append implements events.Store.
func (s jobsReadyStore) Append(
	ctx context.Context, stream string, expected events.Revision, batch []events.Event,
) (events.Appended, error) {
	if err := s.begin(ctx); err != nil {
		return events.Appended{}, fmt.Errorf("%w: reactions cannot begin: %w", events.ErrUnavailable, err)
	}
	return s.Store.Append(ctx, stream, expected, batch)
}
