package snapshot

import (
	"slices"
	"sync"
	"time"
)

// createdTenants lists the existing tenants by the id of their creator.
type createdTenants struct {
	mu sync.RWMutex
	by map[string][]*Tenant
}

func (c *createdTenants) add(creator string, t *Tenant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[creator] = append(c.by[creator], t)
}

func (c *createdTenants) remove(creator string, t *Tenant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := slices.DeleteFunc(c.by[creator], func(other *Tenant) bool { return other == t })
	if c.by[creator] = rest; len(rest) == 0 {
		delete(c.by, creator)
	}
}

// UnpaidFlagBytes is how many bytes the flags of all free and sandbox tenants have together that a person created, each
// counted with most at most: see state.Flag.Bytes.
func (s *Snapshot) UnpaidFlagBytes(creator string, most int, now time.Time) (n int) {
	s.created.mu.RLock()
	defer s.created.mu.RUnlock()
	for _, t := range s.created.by[creator] {
		if t.Plan(now).Unpaid() {
			n += min(t.FlagBytes(), most)
		}
	}
	return n
}
