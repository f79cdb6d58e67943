package queries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flagledger/events"
)

// WaitUntilCurrent waits until the read models of facts of the given names hold all that has been recorded. Unless at
// is the zero time, nothing more can be recorded at that time or before it then. It returns ErrFuture as WaitUntilPast
// does, and ErrUnavailable where it takes too long.
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
		return fmt.Errorf("%w: they have not come to position %s yet", ErrUnavailable, head)
	}
	return nil
}

// holds reports whether the read models of flags hold a position by now.
func (q *Queries) holds(ctx context.Context, position events.Position) bool {
	ctx, cancel := context.WithCancel(ctx)
	cancel() // it looks once, and waits for nobody
	return q.wait != nil && q.wait(ctx, position, []string{"flag."})
}
