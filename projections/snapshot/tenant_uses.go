package snapshot

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"flagledger/projections/snapshot/evaluation"
)

// tenantUses is how a tenant's flags are used.
type tenantUses struct {
	node *uses

	mu           sync.Mutex // held while uses are added and dropped, and while a flag is replaced
	hours        map[unique.Handle[string]]*environmentHour
	count        atomic.Int64 // of flags
	callerPages  atomic.Int64
	outcomeBytes atomic.Int64
	floor        uint32              // the hour before which nothing counts any more: see sweepUses
	all          atomic.Pointer[use] // of all flags, by environment
}

const (
	// maxUses is how many environments of flags a node tells apart in an hour, for a tenant and for all unpaid ones of a
	// creator; beyond it, it counts those of a flag together. All take 16 MiB.
	maxUses = 100_000
	// maxCallerPages is how many pages of callers the uses of flags may have, of a tenant and of all unpaid ones of a
	// creator: 20,000 flags with twelve clients each. All take 8 MiB; who writes a use down writes all of its callers.
	maxCallerPages = 20_000
	// maxOutcomeBytes is how much memory what flags serve may take besides the first outcome of each use, of a tenant and
	// of all unpaid ones of a creator. Values count, though mostly the flags have them anyway: one that was changed leaves
	// them to its uses alone.
	maxOutcomeBytes = 64 << 20
)

// CountTime is the hour that something counts in, and the second at which it was counted.
type CountTime struct {
	hour, second uint32 // of the Unix time
}

func (m CountTime) time() time.Time { return time.Unix(int64(m.second), 0) }

// countTime is the CountTime at a time. While too much waits to be written down, the hour stands still.
func (all *uses) countTime(now time.Time) CountTime {
	second := uint32(now.Unix())
	hour := second / 3600
	if frozen := all.frozen.Load(); frozen != 0 {
		hour = min(hour, frozen)
	}
	return CountTime{hour, second}
}

// CountTime is the CountTime at a time, for counting what is used of the tenant.
func (t *Tenant) CountTime(now time.Time) CountTime { return t.uses.node.countTime(now) }

// CountEvaluation counts what Evaluate of a flag with this key returned, where the flag was asked for by its name. by
// is nil for a person.
func (t *Tenant) CountEvaluation(key, environmentID string, r *Result, by *Client, at CountTime) {
	if by == nil {
		by = people
	}
	u := t.use(&r.flag.uses, key, r.flag, environmentID, at)
	if u == nil || u.in.all == nil {
		t.countAll(environmentID, r.Reason, by, at)
	}
	if u == nil {
		return
	}
	outcome, striped := u.cellOf(r, at), &t.uses.node.striped
	var c *laterCaller
	first := u.firstCaller.client.Load() == by
	if !first {
		c, first = u.callerOf(by, at)
	}
	switch {
	case first:
		advance(&u.firstCaller.seen, at.second) // before it is counted: who adds it up tells when
		outcome.byFirst.add(1, striped)
	case c != nil:
		outcome.byOthers.add(1, striped)
		c.add(at, striped)
	default:
		outcome.byOthers.add(1, striped)
		if all := u.in.all; all != nil {
			all.countCaller(by, at)
			all.markUsed(&all.evaluated, at.second)
		}
	}
	u.markUsed(&u.evaluated, at.second)
}

// CountMany counts what a call for many flags has evaluated, and empties it. A call may count piece by piece: one for
// all flags is one prefetch of the tenant's all the same. by is nil for a person.
func (t *Tenant) CountMany(flags *Uncounted, all bool, environmentID string, by *Client, at CountTime) {
	defer flags.empty()
	if !all {
		for i, key := range flags.keys {
			t.CountEvaluation(key, environmentID, &flags.evaluated[i], by, at)
		}
		return
	}
	for i, key := range flags.keys {
		if u := t.use(&flags.prefetched[i].uses, key, flags.prefetched[i], environmentID, at); u != nil {
			u.prefetches.Add(1)
			u.markUsed(&u.prefetched, at.second)
		}
	}
	if flags.counted {
		return
	}
	flags.counted = true
	u := t.useOfAll(environmentID, at)
	u.prefetches.Add(1)
	u.markUsed(&u.prefetched, at.second)
}

// countAll counts an evaluation for all flags that no use of a flag can be added up for.
func (t *Tenant) countAll(environmentID string, reason evaluation.Reason, by *Client, at CountTime) {
	u := t.useOfAll(environmentID, at)
	u.cellOfReason(reasonCode(reason)).byOthers.add(1, &t.uses.node.striped)
	u.countCaller(by, at)
	u.markUsed(&u.evaluated, at.second)
}

// markUsed notes when a use was counted last, and queues it for writing.
func (u *use) markUsed(last *atomic.Uint32, second uint32) {
	advance(last, second)
	if u.first.state.Load()&queued == 0 {
		u.in.tenant.uses.node.enqueue(u)
	}
}

// advance sets a second if it is after the one before. Of two that do so at once either may be left.
func advance(last *atomic.Uint32, second uint32) {
	if last.Load() < second {
		last.Store(second)
	}
}

// countCaller counts an evaluation in a use of all flags for its caller, if that is told apart.
func (u *use) countCaller(by *Client, at CountTime) {
	if c, _ := u.callerOf(by, at); c != nil {
		c.add(at, &u.in.tenant.uses.node.striped)
	}
}

// add counts an evaluation. striped is as for a counter.
func (c *laterCaller) add(at CountTime, striped *atomic.Int64) {
	advance(&c.seen, at.second)
	c.n.add(1, striped)
}

// use finds the use of a list at a moment, or else adds one. It is nil for a flag of a life that is over.
func (t *Tenant) use(list *atomic.Pointer[use], key string, flag *Flag, environmentID string, at CountTime) *use {
	var everywhere *use
	for u := list.Load(); u != nil; u = u.next.Load() {
		switch u.in.environmentID.Value() {
		case environmentID:
			if u.in.hour >= at.hour {
				return u
			}
			return t.addUse(key, flag, environmentID, at)
		case "":
			everywhere = u
		}
	}
	if everywhere != nil && everywhere.in.hour >= at.hour {
		return everywhere
	}
	return t.addUse(key, flag, environmentID, at)
}

// useOfAll is the use of all flags of the tenant.
func (t *Tenant) useOfAll(environmentID string, at CountTime) *use {
	return t.use(&t.uses.all, "", nil, environmentID, at)
}

// addUse adds the use of a flag, or of all where flag is nil. Those of a list never go back to an earlier hour: what
// comes late counts in the later one.
func (t *Tenant) addUse(key string, flag *Flag, environmentID string, at CountTime) *use {
	s := &t.uses
	s.mu.Lock()
	defer s.mu.Unlock()
	in, hour := unique.Make(environmentID), max(at.hour, s.floor)
	if flag == nil {
		return s.environmentHourOf(t, in, hour).all
	}
	current, ok := t.flags.Load(key)
	if !ok || current.life != flag.life {
		return nil
	}
	list := &current.uses
	before, next, shared := findUse(list, in)
	if next == nil && s.limitReached(t, at, maxUses, usesOf) {
		in = everywhere
		before, next, shared = findUse(list, in)
	}
	if next != nil && next.in.hour >= hour {
		return next
	}
	if shared == "" {
		shared = strings.Clone(key)
	}
	u := &use{in: s.environmentHourOf(t, in, hour), key: shared, life: flag.life}
	if next != nil {
		next.drop()
		u.next.Store(next.next.Load())
	} else {
		u.next.Store(list.Load())
		before = list
	}
	s.count.Add(1)
	before.Store(u)
	return u
}

// everywhere is where environments are not told apart.
var everywhere = unique.Make("")

// environmentHourOf is that of an environment and an hour, or of the later hour that the environment has been used in.
func (s *tenantUses) environmentHourOf(t *Tenant, in unique.Handle[string], hour uint32) *environmentHour {
	p, ok := s.hours[in]
	if ok && p.hour >= hour {
		return p
	}
	if s.hours == nil {
		s.hours = map[unique.Handle[string]]*environmentHour{}
	}
	p = &environmentHour{tenant: t, environmentID: in, hour: hour}
	s.hours[in] = p
	if in == everywhere {
		return p
	}
	p.all = &use{in: p}
	before, last, _ := findUse(&s.all, in)
	if last != nil {
		p.all.next.Store(last.next.Load())
	}
	before.Store(p.all)
	return p
}

// findUse finds the use in an environment and what points to it. key is that of any use in the list.
func findUse(
	list *atomic.Pointer[use], in unique.Handle[string],
) (before *atomic.Pointer[use], found *use, key string) {
	for before = list; ; before = &found.next {
		found = before.Load()
		if found == nil {
			return before, nil, key
		}
		if key = found.key; found.in.environmentID == in {
			return before, found, key
		}
	}
}

// cellOf finds the cell of a result, or adds it.
func (u *use) cellOf(r *Result, at CountTime) *cell {
	if c := u.findByPointer(r); c != nil {
		return c
	}
	if c, _, _ := u.find(r); c != nil {
		return c
	}
	u.in.tenant.uses.mu.Lock()
	defer u.in.tenant.uses.mu.Unlock()
	return u.add(r, at)
}

// cellOfReason finds the cell of a reason in a use of all flags, or adds it.
func (u *use) cellOfReason(code uint32) *cell {
	if c := u.ofReason(code); c != nil {
		return c
	}
	u.in.tenant.uses.mu.Lock()
	defer u.in.tenant.uses.mu.Unlock()
	if c := u.ofReason(code); c != nil {
		return c
	}
	return u.addCell(nil, code)
}

// callerOf finds a client among the callers, or adds it. first reports that it is the first, whose evaluations the
// cells count: c is nil then, and for a client that is not told apart.
func (u *use) callerOf(client *Client, at CountTime) (c *laterCaller, first bool) {
	switch c, full := u.findCaller(client); {
	case c != nil:
		return c, false
	case full:
		return u.changedCaller(client)
	}
	u.in.tenant.uses.mu.Lock()
	defer u.in.tenant.uses.mu.Unlock()
	return u.addCaller(client, at)
}

func usesOf(s *tenantUses) int64         { return s.count.Load() }
func callerPagesOf(s *tenantUses) int64  { return s.callerPages.Load() }
func outcomeBytesOf(s *tenantUses) int64 { return s.outcomeBytes.Load() }

// limitReached reports whether there is as much as may be, of a tenant or, where nobody pays for it, of all such
// tenants that its creator has.
func (s *tenantUses) limitReached(t *Tenant, at CountTime, most int64, of func(*tenantUses) int64) bool {
	return of(s) >= most || s.node.created.limitReached(t, at.time(), most, of)
}

// replace puts a flag in the place of another, nil for none, and hands its uses on if it has the same life.
func (t *Tenant) replace(key string, before, after *Flag) {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	if before != nil {
		if after != nil && after.life == before.life {
			after.uses.Store(before.uses.Load())
		} else {
			before.dropUses()
		}
	}
	if after == nil {
		t.flags.Delete(key)
		return
	}
	t.flags.Store(strings.Clone(key), after) // else the key would keep the stream's name in memory
}

// dropUses takes the uses of a flag that is gone out of the tenant's.
func (f *Flag) dropUses() {
	for u := f.uses.Load(); u != nil; u = u.next.Load() {
		u.drop()
	}
}

// clearFlags removes all flags of a tenant that is deleted.
func (t *Tenant) clearFlags() {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	t.flags.Clear()
}
