package queries

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"flagledger/events"
)

const (
	// maxClockLead is by how much this node's clock may be ahead of the store's: whoever asks for the time of now waits until it has come there, too.
	maxClockLead = 2 * time.Second
	// maxWatermarkWait is how long the store may take to tell its watermark: it waits for appends.
	maxWatermarkWait = 2 * time.Second
)

// Watermark knows which times the log of a store has passed. It asks the store once at a time, and only about times after those that it knows to be past.
type Watermark struct {
	store  events.Store
	asking singleflight.Group
	known  atomic.Pointer[time.Time]
}

// NewWatermark returns the Watermark of a store.
func NewWatermark(store events.Store) *Watermark { return &Watermark{store: store} }

// WaitUntilPast waits until nothing can be recorded at a time any more, and all that was recorded by then can be read. It returns ErrFuture for a time that has not come
// by the store's clock, and ErrUnavailable where the store does not tell.
func (w *Watermark) WaitUntilPast(ctx context.Context, at time.Time) error {
	for known := w.known.Load(); known == nil || !at.Before(*known); {
		passed, err := w.ask(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		lead := at.Sub(passed)
		if lead < 0 {
			return nil
		}
		if lead > maxClockLead || at.After(time.Now()) {
			return ErrFuture
		}
		select {
		case <-time.After(lead):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
		}
	}
	return nil
}

// ask returns the store's watermark, or the one that it tells others just now.
func (w *Watermark) ask(ctx context.Context) (passed time.Time, err error) {
	answer := w.asking.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWatermarkWait) // others wait for it, too
		defer cancel()
		passed, err := w.store.Watermark(ctx)
		if err == nil {
			w.known.Store(&passed)
		}
		return passed, err
	})
	select {
	case a := <-answer:
		return a.Val.(time.Time), a.Err
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}
