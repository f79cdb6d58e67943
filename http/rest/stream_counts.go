package rest

import "sync"

// StreamCounts counts open streams by the owner of their quota.
type StreamCounts struct {
	mu      sync.Mutex
	byOwner map[string]int
}

// NewStreamCounts returns counts without a stream.
func NewStreamCounts() *StreamCounts { return &StreamCounts{byOwner: map[string]int{}} }

// Take counts one more stream, unless most are open.
func (c *StreamCounts) Take(owner string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byOwner[owner] >= most {
		return false
	}
	c.byOwner[owner]++
	return true
}

// Leave counts a stream of Take no longer.
func (c *StreamCounts) Leave(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byOwner[owner]--; c.byOwner[owner] == 0 {
		delete(c.byOwner, owner)
	}
}
