package commands

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"flagledger/events"
	"flagledger/retry"
)

// outageTimeout is how long a command goes on trying after the store was first found to be gone: long enough for a lost
// connection, short enough to answer within a second.
const outageTimeout = 700 * time.Millisecond

// storeRetry bounds how long a command goes on trying to reach a store. The zero storeRetry has not failed yet.
type storeRetry struct {
	delays   *backoff.ExponentialBackOff
	deadline time.Time
}

// wait waits before the next attempt, and reports whether there is one: err is ErrUnavailable and the time is not over.
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
