package esdbtest

import "time"

// HoldsIn waits for a condition, and reports whether it held within a time limit.
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
