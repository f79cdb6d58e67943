package snapshot

import (
	"iter"
	"maps"
	"time"
	"unique"

	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage/counted"
)

// maxPast is how many bytes, about, uses of past hours may take before no new hour begins.
const maxPast = 64 << 20

// TakeUses yields each use that has counted something since it was last yielded, those of tenants first, as they are
// few. Uses left when the caller stops come first next time; those of deleted flags and tenants are left out. Calls
// must not overlap.
func (s *Snapshot) TakeUses() iter.Seq[counted.Use] {
	return func(yield func(counted.Use) bool) {
		flags := s.uses.flags.take()
		for _, u := range flags {
			u.addUp()
		}
		if !s.uses.tenants.yield(s.uses.tenants.take(), yield) {
			s.uses.flags.giveBack(flags)
			return
		}
		s.uses.flags.yield(flags, yield)
	}
}

func (q *useQueue) yield(list []*use, yield func(counted.Use) bool) bool {
	for i, u := range list {
		u.first.state.And(^uint32(queued)) // before its counts are read: what is counted later has it yielded again
		u.addUp()
		if u.alive() && !yield(u.read()) {
			q.giveBack(list[i+1:])
			return false
		}
	}
	return true
}

// addUp adds what a flag has counted since the last time to the use of all flags.
func (u *use) addUp() {
	all := u.in.all
	if all == nil || u.key == "" {
		return
	}
	striped := &u.in.tenant.uses.node.striped
	for c := &u.first; c != nil; c = c.next.Load() {
		if more := uint32(c.total()) - c.added; more > 0 {
			all.cellOfReason(c.state.Load()&reasonMask).byOthers.add(uint64(more), striped)
			c.added += more
			all.markUsed(&all.evaluated, u.evaluated.Load())
		}
	}
	for c, n := range u.eachCaller() {
		if more := uint32(n) - c.added; more > 0 {
			c.added += more
			if of, _ := all.callerOf(c.client.Load(), CountTime{}); of != nil {
				of.n.add(uint64(more), striped)
				advance(&of.seen, c.seen.Load())
				all.markUsed(&all.evaluated, u.evaluated.Load())
			}
		}
	}
}

// UsesWritten is called once all uses that TakeUses yielded are written, or to be yielded again. It drops uses of past
// hours. While more than maxPast bytes of them wait, everything counts in the hour in which that began.
func (s *Snapshot) UsesWritten(now time.Time) {
	hour := uint32(now.Unix()) / 3600
	past := s.uses.flags.bytesBefore(hour) + s.uses.tenants.bytesBefore(hour)
	switch frozen := s.uses.frozen.Load(); {
	case past <= s.uses.maxPast:
		s.uses.frozen.Store(0)
	case frozen == 0:
		s.uses.frozen.Store(hour)
	}
	if s.uses.frozen.Load() == 0 && s.uses.swept.Load() < hour {
		s.uses.swept.Store(hour)
		s.sweepUses(hour)
	}
}

// bytesBefore returns how many bytes, about, uses of hours before one take.
func (q *useQueue) bytesBefore(hour uint32) (bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, u := range q.uses {
		if u.in.hour < hour {
			bytes += u.bytes()
		}
	}
	return bytes
}

// bytes is how much memory a use takes, about.
func (u *use) bytes() int {
	bytes := useBytes + callerPageBytes*u.pages() + int(u.outcomeBytes())
	for c := &u.first; c != nil; c = c.next.Load() {
		bytes += c.byOthers.bytes() + c.byFirst.bytes()
	}
	for page := u.callers.Load(); page != nil; page = page.next.Load() {
		for i := range page.of {
			bytes += page.of[i].n.bytes()
		}
	}
	return bytes
}

const (
	useBytes        = 160
	callerPageBytes = 384
	cellBytes       = 64
)

// alive reports whether anybody may still ask for a use.
func (u *use) alive() bool {
	t := u.in.tenant
	if !t.state.Load().Exists {
		return false
	}
	if u.key == "" {
		return true
	}
	f, ok := t.flags.Load(u.key)
	return ok && f.life == u.life
}

var reasonsByCode = map[uint32]evaluation.Reason{
	reasonCode(evaluation.Archived):    evaluation.Archived,
	reasonCode(evaluation.Off):         evaluation.Off,
	reasonCode(evaluation.RuleMatch):   evaluation.RuleMatch,
	reasonCode(evaluation.Fallthrough): evaluation.Fallthrough,
}

func (u *use) read() counted.Use {
	read := counted.Use{
		TenantID:      u.in.tenant.id,
		FlagKey:       u.key,
		Life:          uint64(u.life),
		EnvironmentID: u.in.environmentID.Value(),
		Hour:          time.Unix(int64(u.in.hour)*3600, 0).UTC(),
		Evaluated:     secondOf(u.evaluated.Load()),
		Prefetched:    secondOf(u.prefetched.Load()),
		Prefetches:    uint64(u.prefetches.Load()),
		Source:        u,
	}
	for c := &u.first; c != nil; c = c.next.Load() {
		if c.state.Load()&reasonMask == 0 {
			break
		}
		state := c.state.Or(outcomeWritten)
		one := counted.Served{
			Reason: string(reasonsByCode[state&reasonMask]),
			Count:  c.total(),
			New:    state&outcomeWritten == 0,
		}
		switch served := c.served.Load(); served {
		case nil:
		case restOutcome:
			one.Rest = true
		default:
			one.VariationID, one.VariationName, one.Value = served.ID, served.Name, served.Value
		}
		read.Served = append(read.Served, one)
	}
	for c, n := range u.eachCaller() {
		read.Callers = append(read.Callers,
			counted.Caller{ClientID: c.client.Load().ID, Count: n, Seen: secondOf(c.seen.Load())})
	}
	return read
}

// eachCaller yields the callers, and how many evaluations each made.
func (u *use) eachCaller() iter.Seq2[*caller, uint64] {
	return func(yield func(*caller, uint64) bool) {
		if u.firstCaller.client.Load() != nil && !yield(&u.firstCaller, u.countByFirst()) {
			return
		}
		for page := u.callers.Load(); page != nil; page = page.next.Load() {
			for i := range page.of {
				c := &page.of[i]
				if c.client.Load() == nil || !yield(&c.caller, c.n.load()) {
					return
				}
			}
		}
	}
}

// countByFirst is how often the first caller made evaluations.
func (u *use) countByFirst() (n uint64) {
	for c := &u.first; c != nil; c = c.next.Load() {
		n += c.byFirst.load()
	}
	return n
}

// secondOf is the zero time for 0.
func secondOf(second uint32) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return time.Unix(int64(second), 0).UTC()
}

// Retry implements counted.Source.
func (u *use) Retry() {
	for c := &u.first; c != nil; c = c.next.Load() {
		c.state.And(^uint32(outcomeWritten))
	}
	u.in.tenant.uses.node.enqueue(u)
}

// sweepUses drops the uses of hours before one. Nothing counts in such an hour any more, so that none is added again.
func (s *Snapshot) sweepUses(hour uint32) {
	s.uses.striped.Store(0)
	s.tenants.Range(func(_ string, t *Tenant) bool {
		t.uses.mu.Lock()
		counted := len(t.uses.hours) > 0
		t.uses.floor = max(t.uses.floor, hour)
		if counted {
			maps.DeleteFunc(t.uses.hours, func(_ unique.Handle[string], p *environmentHour) bool { return p.hour < hour })
			t.uses.sweepAll(hour)
		}
		t.uses.mu.Unlock()
		if counted {
			t.sweepFlags(hour)
		}
		return true
	})
}

func (s *tenantUses) sweepAll(hour uint32) {
	for at := &s.all; at.Load() != nil; {
		u := at.Load()
		if u.in.hour >= hour {
			at = &u.next
			continue
		}
		at.Store(u.next.Load())
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
			if u.in.hour >= hour {
				at = &u.next
				continue
			}
			at.Store(u.next.Load())
			u.drop()
		}
		return true
	})
}
