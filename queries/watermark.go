package queries

import (
	"context"
	"fmt"
	"time"

	"flagledger/events"
)

// maxClockLead is by how much, at most, this node's clock may be ahead of a store's: a call about now waits until the
// store's clock has come there, too.
const maxClockLead = 500 * time.Millisecond

// WaitUntilPast waits until a store can record nothing more at a time or before it, and all that was recorded by then
// can be read. Where this node's clock is ahead of the store's, it waits up to maxClockLead for the difference. It
// returns ErrFuture for a time that is further ahead, or ahead of this node's clock too, and otherwise the store's
// error, or that of ctx.
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
		case !again: // the answer may be one that was on its way to others before this call
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
