package snapshot

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestACounterLosesNothing(t *testing.T) {
	for what, before := range map[string]*stripes{"without stripes": nil, "with stripes": {}} {
		t.Run(what, func(t *testing.T) {
			var c counter
			var striped atomic.Int64
			c.add(3, &striped)
			c.stripes.Store(before)
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for range 1000 {
						c.add(2, &striped)
					}
				})
			}
			all.Wait()
			if n := c.load(); n != 3+16*1000*2 {
				t.Errorf("it counted %d, want 32003", n)
			}
		})
	}
}

// A node has no more stripes than its bound, however many counters are contended for.
func TestCountersHaveNoStripesBeyondTheBound(t *testing.T) {
	var striped atomic.Int64
	striped.Store(maxStriped)
	var c counter
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 10_000 {
				c.add(1, &striped)
			}
		})
	}
	all.Wait()
	if c.stripes.Load() != nil || c.load() != 160_000 {
		t.Errorf("it counted %d, with stripes: %v", c.load(), c.stripes.Load() != nil)
	}
}
