package nodetest

import (
	"runtime"
	"time"
)

// LargestHeap returns the largest heap size until stop is closed, in bytes.
func LargestHeap(stop <-chan struct{}) (largest uint64) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var stats runtime.MemStats
	for {
		select {
		case <-tick.C:
			runtime.ReadMemStats(&stats)
			largest = max(largest, stats.HeapInuse)
		case <-stop:
			return largest
		}
	}
}
