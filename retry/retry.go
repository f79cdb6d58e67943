// Package retry repeats attempts to reach a server that has gone away, everywhere by the same policy: the first wait is
// 50 ms, each further one is longer, up to 2 s, and all vary at random, so that nodes do not come at once.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// NewDelays returns the waits between attempts.
func NewDelays() *backoff.ExponentialBackOff {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval = 50*time.Millisecond, 2*time.Second
	return delays
}

// Run repeats an attempt until it returns nil or a Permanent error, which it returns, or ctx ends. Before each wait it
// calls failed. An attempt that calls progressed before it fails is followed by the shortest wait.
func Run(ctx context.Context, attempt func(progressed func()) error, failed func(err error, wait time.Duration)) error {
	delays := NewDelays()
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, attempt(delays.Reset) },
		backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(0), backoff.WithNotify(failed))
	return err
}

// Permanent wraps an error after which Run ends.
func Permanent(err error) error { return backoff.Permanent(err) }

// Sleep waits, and returns an error if ctx ends meanwhile.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
