package esdbtest

import "time"

// WaitFor waits up to a time limit for a condition, and reports whether it holds.
func WaitFor(limit time.Duration, holds func() bool) bool {
	deadline := time.After(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
	return true
}
