package snapshot

import (
	"slices"
	"sync"
	"time"

	"flagledger/events"
)

// createdTenants are the tenants that there are, by the id of the person that they count for, as Tenant.Creator. It has no entry for somebody without tenants.
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

// takeOver has a tenant count for whoever ousts the person that it counted for.
func (s *Snapshot) takeOver(t *Tenant, next *tenantState, e events.Recorded) {
	if userID, by := events.Ousted(e.Event); by != "" && userID == next.creator {
		s.created.remove(userID, t)
		s.created.add(by, t)
		next.creator = by
	}
}

// UnpaidFlagBytes is how many bytes the flags of all free and sandbox tenants have together that a person created, each counted with most at most: see
// events.FlagBytesAfter.
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
