// Package retry repeats failed attempts with one backoff policy: 50 ms at first, growing to 2 s, and randomized, so
// that nodes do not retry at the same time. Sleep is time.Sleep with a context.
package retry

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const longest = 2 * time.Second

// NewBackoff returns the waits between attempts.
func NewBackoff() *backoff.ExponentialBackOff {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval = 50*time.Millisecond, longest*2/3 // randomized by half
	return delays
}

// Run calls attempt until it succeeds, returns a Permanent error or ctx ends; it returns that error or ctx's cause. It
// calls onFailure before each wait. An attempt that made progress calls resetBackoff to restart with the shortest
// wait.
func Run(
	ctx context.Context, attempt func(resetBackoff func()) error, onFailure func(err error, wait time.Duration),
) error {
	delays := NewBackoff()
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, attempt(delays.Reset) },
		backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(0), backoff.WithNotify(onFailure))
	return err
}

// errEnded is the error of an attempt of Forever that ended without one.
var errEnded = errors.New("it ended")

// Forever works like Run, but counts nil as a failure too. It returns once ctx has ended.
func Forever(
	ctx context.Context, attempt func(resetBackoff func()) error, onFailure func(err error, wait time.Duration),
) {
	_ = Run(ctx, func(resetBackoff func()) error { return cmp.Or(attempt(resetBackoff), errEnded) }, onFailure)
}

// Permanent marks an error that Run must not retry.
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
