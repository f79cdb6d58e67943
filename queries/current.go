package queries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flagledger/events"
)

// WaitUntilCurrent waits until the named events' read models hold everything recorded so far. If at is set, nothing
// more can be recorded up to that time. It returns ErrFuture as WaitUntilPast does, and ErrUnavailable if it takes too
// long.
func (q *Queries) WaitUntilCurrent(ctx context.Context, at time.Time, names ...string) error {
	if !at.IsZero() {
		switch err := WaitUntilPast(ctx, q.store, at); {
		case errors.Is(err, ErrFuture):
			return err
		case err != nil:
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	head, err := q.store.Head(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if !q.wait(ctx, head, names) {
		return fmt.Errorf("%w: they have not reached position %s yet", ErrUnavailable, head)
	}
	return nil
}

// holds reports whether the read models of flags have reached a position.
func (q *Queries) holds(ctx context.Context, position events.Position) bool {
	ctx, cancel := context.WithCancel(ctx)
	cancel() // checks once without waiting
	return q.wait != nil && q.wait(ctx, position, []string{"flag."})
}
