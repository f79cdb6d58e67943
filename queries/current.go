package queries

import (
	"context"
	"fmt"
	"time"

	"flagledger/events"
)

// WaitUntilCurrent waits until the read models of facts of the given names hold all that was recorded by a time, to which nothing can be added any more. For the
// zero time they hold all that has been recorded. It returns ErrFuture for a time that has not come by the store's clock, and ErrUnavailable where it takes too long.
func (q *Queries) WaitUntilCurrent(ctx context.Context, at time.Time, names ...string) error {
	if !at.IsZero() {
		if err := q.past.WaitUntilPast(ctx, at); err != nil {
			return err
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
