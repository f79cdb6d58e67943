package esdbtest

import "time"

// HoldsIn waits for a condition, and reports whether it came to hold in time.
func HoldsIn(limit time.Duration, holds func() bool) bool {
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
