package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"flagledger/retry"
)

var errDown = errors.New("down")

func TestRunWaitsLongerUntilProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		attempts := 0
		err := retry.Run(t.Context(), func(progressed func()) error {
			attempts++
			switch attempts {
			case 20:
				progressed()
			case 22:
				return nil
			}
			return errDown
		}, func(_ error, wait time.Duration) { waits = append(waits, wait) })
		if err != nil || len(waits) != 21 {
			t.Fatalf("%d waits: %v", len(waits), err)
		}
		if longest := slices.Max(waits); longest < time.Second || longest > 2*time.Second {
			t.Errorf("the longest wait is %v", longest)
		}
		for _, i := range []int{0, 19} { // the first of all, and that after progress
			if waits[i] > 75*time.Millisecond {
				t.Errorf("wait %d is %v", i, waits[i])
			}
		}
	})
}

func TestRunEndsAtAPermanentErrorOrWithItsContext(t *testing.T) {
	t.Parallel()
	failed := func(error, time.Duration) {}
	permanent := func(func()) error { return retry.Permanent(errDown) }
	if err := retry.Run(t.Context(), permanent, failed); !errors.Is(err, errDown) {
		t.Errorf("a permanent error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ends := func(func()) error {
		cancel()
		return errDown
	}
	if err := retry.Run(ctx, ends, failed); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}
}

func TestForeverTakesAnEndForAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		attempts := 0
		retry.Forever(ctx, func(func()) error {
			if attempts++; attempts == 3 {
				cancel()
			}
			return nil
		}, func(error, time.Duration) {})
		if attempts != 3 {
			t.Errorf("%d attempts", attempts)
		}
	})
}
