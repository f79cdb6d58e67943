package nodetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// Samples collects durations from several goroutines.
type Samples struct {
	mu   sync.Mutex
	List []time.Duration
}

// Add adds a duration.
func (s *Samples) Add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.List = append(s.List, d)
}

// Percentile returns the duration that the given percentage of samples does not exceed.
func (s *Samples) Percentile(percent int) time.Duration {
	slices.Sort(s.List)
	return s.List[min(len(s.List)*percent/100, len(s.List)-1)]
}

// Report adds a percentile to a benchmark's metrics, in milliseconds.
func (s *Samples) Report(b *testing.B, percent int) {
	b.ReportMetric(float64(s.Percentile(percent).Microseconds())/1000, fmt.Sprintf("p%d-ms", percent))
}

// String summarizes the number of samples and their durations.
func (s *Samples) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.List) == 0 {
		return "none"
	}
	at := func(percent int) time.Duration { return s.Percentile(percent).Round(100 * time.Microsecond) }
	return fmt.Sprintf("%d, p50 %v, p99 %v, worst %v", len(s.List), at(50), at(99), at(100))
}
