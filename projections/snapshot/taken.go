package snapshot

import (
	"iter"
	"time"
	"unique"

	"flagledger/commands/keep/metering/counted"
)

// maxPast is how many bytes of uses of past hours may wait to be written down, about, before the hour stands still.
const maxPast = 64 << 20

// TakeUses yields all uses that have counted something since they were last yielded; those after which it is ended are yielded next time. Of flags and tenants that have been
// deleted it yields none.
func (s *Snapshot) TakeUses() iter.Seq[counted.Use] {
	return func(yield func(counted.Use) bool) {
		s.uses.mu.Lock()
		changed := s.uses.changed
		s.uses.changed = nil
		s.uses.mu.Unlock()
		for i, u := range changed {
			u.changed.Store(false) // before its counts are read: what is counted later has it yielded again
			if u.alive() && !yield(u.read()) {
				s.uses.mu.Lock()
				s.uses.changed = append(s.uses.changed, changed[i+1:]...)
				s.uses.mu.Unlock()
				return
			}
		}
	}
}

// UsesWritten is called once all that can be written down of what TakeUses yielded has been: the rest is to be yielded again. It forgets past hours, and has the hour stand still while
// too much of them waits.
func (s *Snapshot) UsesWritten(now time.Time) {
	hour := uint32(now.Unix()) / 3600
	s.uses.mu.Lock()
	waiting, past := s.uses.changed, 0
	s.uses.mu.Unlock()
	for _, u := range waiting {
		if u.hour < hour {
			past += useBytes + callerPageBytes*u.pages()
		}
	}
	switch frozen := s.uses.frozen.Load(); {
	case past <= s.uses.maxPast:
		s.uses.frozen.Store(0)
	case frozen == 0:
		s.uses.frozen.Store(hour)
	}
	if s.uses.frozen.Load() == 0 && s.uses.swept.Swap(hour) != hour {
		s.sweepUses(hour)
	}
}

const (
	useBytes        = 160
	callerPageBytes = 288
)

// alive reports whether anybody may still ask for a use.
func (u *use) alive() bool {
	t := u.place.tenant
	if !t.state.Load().exists {
		return false
	}
	if u.key == "" {
		return true
	}
	f, ok := t.flags.Load(u.key)
	return ok && f.life == u.life
}

var reasonsByLetter = map[uint32]Reason{letterOf(Archived): Archived, letterOf(Off): Off, letterOf(RuleMatch): RuleMatch, letterOf(Fallthrough): Fallthrough}

func (u *use) read() counted.Use {
	read := counted.Use{
		TenantID: u.place.tenant.id, FlagKey: u.key, Life: uint64(u.life), EnvironmentID: u.place.environmentID.Value(), Hour: time.Unix(int64(u.hour)*3600, 0).UTC(),
		Evaluated: secondOf(u.evaluated.Load()), Prefetched: secondOf(u.prefetched.Load()), Prefetches: uint64(u.prefetches.Load()), Source: u,
	}
	for c := &u.first; c != nil; c = c.next.Load() {
		if c.state.Load() == 0 {
			break
		}
		state := c.state.Or(told)
		one := counted.Served{Reason: string(reasonsByLetter[state&letter]), Count: c.count(), New: state&told == 0}
		switch served := c.served.Load(); served {
		case nil:
		case theRest:
			one.Rest = true
		default:
			one.VariationID, one.VariationName, one.Value = served.id, served.name, served.value
		}
		read.Served = append(read.Served, one)
	}
	read.Callers = u.caller.read(nil)
	for page := u.callers.Load(); page != nil; page = page.next.Load() {
		for i := range page.of {
			read.Callers = page.of[i].read(read.Callers)
		}
	}
	return read
}

func (c *caller) read(list []counted.Caller) []counted.Caller {
	client := c.client.Load()
	if client == nil {
		return list
	}
	return append(list, counted.Caller{ClientID: client.ID, Count: c.n.Load(), Seen: secondOf(c.seen.Load())})
}

// secondOf is the zero time for 0.
func secondOf(second uint32) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return time.Unix(int64(second), 0).UTC()
}

// Again implements counted.Source.
func (u *use) Again() {
	for c := &u.first; c != nil; c = c.next.Load() {
		c.state.And(letter)
	}
	u.place.tenant.uses.all.note(u)
}

// sweepUses drops the uses of hours before one. Nothing counts in such an hour any more, so that none is added again.
func (s *Snapshot) sweepUses(hour uint32) {
	s.uses.striped.Store(0)
	s.tenants.Range(func(_ string, t *Tenant) bool {
		t.uses.mu.Lock()
		counted := t.uses.places != nil
		t.uses.floor = hour
		if counted {
			t.uses.places = map[unique.Handle[string]]*place{}
			t.uses.sweepOwn(hour)
		}
		t.uses.mu.Unlock()
		if counted {
			t.sweepFlags(hour)
		}
		return true
	})
}

func (s *tenantUses) sweepOwn(hour uint32) {
	for at := &s.own; at.Load() != nil; {
		if u := at.Load(); u.hour < hour {
			at.Store(u.next.Load())
		} else {
			at = &u.next
		}
	}
}

// sweepFlags locks the uses for a few flags at a time.
func (t *Tenant) sweepFlags(hour uint32) {
	t.flags.Range(func(key string, f *Flag) bool {
		if f.uses.Load() == nil {
			return true
		}
		t.uses.mu.Lock()
		defer t.uses.mu.Unlock()
		current, ok := t.flags.Load(key)
		if !ok {
			return true
		}
		for at := &current.uses; at.Load() != nil; {
			u := at.Load()
			if u.hour >= hour {
				at = &u.next
				continue
			}
			at.Store(u.next.Load())
			t.uses.count--
			t.uses.callerPages -= u.pages()
		}
		return true
	})
}

// EnvironmentIDs lists a tenant's environments, and returns false if there is no such tenant.
func (s *Snapshot) EnvironmentIDs(tenantID string) (ids []string, exists bool) {
	t, ok := s.Tenant(tenantID)
	if !ok {
		return nil, false
	}
	for _, e := range t.Environments() {
		ids = append(ids, e.ID)
	}
	return ids, true
}

// FlagLife is the revision of the FlagCreated that a flag began with, and false if there is no such flag.
func (s *Snapshot) FlagLife(tenantID, key string) (uint64, bool) {
	t, ok := s.Tenant(tenantID)
	if !ok {
		return 0, false
	}
	f, ok := t.Flag(key)
	if !ok {
		return 0, false
	}
	return uint64(f.life), true
}
