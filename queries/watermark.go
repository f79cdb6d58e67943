package queries

import (
	"context"
	"fmt"
	"time"

	"flagledger/events"
)

// maxClockLead limits how far this node's clock may be ahead of the store's. A call about now waits for the
// difference.
const maxClockLead = 500 * time.Millisecond

// WaitUntilPast waits until the store can record nothing more up to a time. It waits up to maxClockLead if this node's
// clock is ahead of the store's. It returns ErrFuture for a later time, the store's error or that of ctx.
func WaitUntilPast(ctx context.Context, store events.Store, at time.Time) error {
	for again := false; ; again = true {
		passed, err := store.Watermark(ctx, at)
		if err != nil {
			return fmt.Errorf("watermark of the event store: %w", err)
		}
		lead := at.Sub(passed)
		switch {
		case lead < 0:
			return nil
		case !again: // the answer may have been for earlier callers
		case lead > maxClockLead, at.After(time.Now()):
			return ErrFuture
		default:
			select {
			case <-time.After(lead):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
