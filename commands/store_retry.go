package commands

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"flagledger/events"
)

const (
	// outageTimeout is how long a command goes on trying after the store was first found to be gone: long enough for a lost connection, short
	// enough to answer within a second.
	outageTimeout = 700 * time.Millisecond
	firstRetry    = 10 * time.Millisecond
	maxRetry      = 100 * time.Millisecond
)

// retry bounds how long a command goes on trying to reach a store. The zero retry has not failed yet.
type retry struct {
	delays   backoff.ExponentialBackOff
	deadline time.Time
}

// wait waits before the next attempt, and reports whether there is one: err is ErrUnavailable and the time is not over.
func (r *retry) wait(ctx context.Context, err error) bool {
	if !errors.Is(err, events.ErrUnavailable) {
		return false
	}
	if r.deadline.IsZero() {
		r.delays = backoff.ExponentialBackOff{InitialInterval: firstRetry, Multiplier: 2, MaxInterval: maxRetry}
		r.deadline = time.Now().Add(outageTimeout)
	}
	delay := r.delays.NextBackOff()
	if time.Now().Add(delay).After(r.deadline) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(delay):
		return true
	}
}
