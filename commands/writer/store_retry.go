package writer

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"flagledger/events"
	"flagledger/retry"
)

// outageTimeout limits a command's retries after the first failure of the store: long enough for a lost connection,
// short enough to respond within a second.
const outageTimeout = 700 * time.Millisecond

// storeRetry limits a command's retries to reach a store. The zero storeRetry has not failed yet.
type storeRetry struct {
	delays   *backoff.ExponentialBackOff
	deadline time.Time
}

// wait waits before the next attempt. It returns false if err is not ErrUnavailable or the time is over.
func (r *storeRetry) wait(ctx context.Context, err error) bool {
	if !errors.Is(err, events.ErrUnavailable) {
		return false
	}
	if r.deadline.IsZero() {
		r.delays = retry.NewBackoff()
		r.deadline = time.Now().Add(outageTimeout)
	}
	delay := r.delays.NextBackOff()
	if time.Now().Add(delay).After(r.deadline) {
		return false
	}
	return retry.Sleep(ctx, delay) == nil
}
