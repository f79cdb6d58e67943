package snapshot

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"
)

// tenantUses is how a tenant's flags are used.
type tenantUses struct {
	node *uses

	mu           sync.Mutex // held while uses are added and dropped, and while a flag is replaced
	places       map[unique.Handle[string]]*place
	count        atomic.Int64 // of flags
	callerPages  atomic.Int64
	outcomeBytes atomic.Int64
	floor        uint32              // the hour before which nothing counts any more: see sweep
	all          atomic.Pointer[use] // of all flags, by environment
}

const (
	// maxUses is how many environments of flags a node tells apart in an hour, for a tenant and for all unpaid ones of a creator; beyond it, it counts those of a flag together. All
	// take 16 MiB.
	maxUses = 100_000
	// maxCallerPages is how many pages of callers the uses of flags may have, of a tenant and of all unpaid ones of a creator: 20,000 flags with twelve clients each. All take 8 MiB;
	// who writes a use down writes all of its callers.
	maxCallerPages = 20_000
	// maxOutcomeBytes is how much memory what flags serve may take besides the first outcome of each use, of a tenant and of all unpaid ones of a creator. Values count, though mostly
	// the flags have them anyway: one that was changed leaves them to its uses alone.
	maxOutcomeBytes = 64 << 20
)

// Moment is when something is counted.
type Moment struct {
	hour, second uint32 // of the Unix time
}

func (m Moment) time() time.Time { return time.Unix(int64(m.second), 0) }

// moment is the moment at a time. While too much waits to be written down, the hour stands still.
func (all *uses) moment(now time.Time) Moment {
	second := uint32(now.Unix())
	hour := second / 3600
	if frozen := all.frozen.Load(); frozen != 0 {
		hour = min(hour, frozen)
	}
	return Moment{hour, second}
}

// Moment is the moment at a time, for counting what is used of the tenant.
func (t *Tenant) Moment(now time.Time) Moment { return t.uses.node.moment(now) }

// CountEvaluation counts what Evaluate of a flag with this key returned, where the flag was asked for by its name. by is nil for a person.
func (t *Tenant) CountEvaluation(key, environmentID string, r *Result, by *Client, at Moment) {
	if by == nil {
		by = people
	}
	u := t.use(&r.flag.uses, key, r.flag, environmentID, at)
	if u == nil || u.place.all == nil {
		t.countAll(environmentID, r.Reason, by, at)
	}
	if u == nil {
		return
	}
	u.cellOf(r, at).n.add(1, &t.uses.node.striped)
	if all := u.place.all; !u.countCaller(by, at) && all != nil {
		all.countCaller(by, at)
		all.seen(&all.evaluated, at.second)
	}
	u.seen(&u.evaluated, at.second)
}

// CountMany counts what a call for many flags has evaluated, and empties its tally. A call may count piece by piece: one for all flags is one prefetch of the tenant's all the
// same. by is nil for a person.
func (t *Tenant) CountMany(y *Tally, all bool, environmentID string, by *Client, at Moment) {
	defer y.empty()
	if !all {
		for i, key := range y.keys {
			t.CountEvaluation(key, environmentID, &y.evaluated[i], by, at)
		}
		return
	}
	for i, key := range y.keys {
		if u := t.use(&y.prefetched[i].uses, key, y.prefetched[i], environmentID, at); u != nil {
			u.prefetches.Add(1)
			u.seen(&u.prefetched, at.second)
		}
	}
	if y.counted {
		return
	}
	y.counted = true
	u := t.useOfAll(environmentID, at)
	u.prefetches.Add(1)
	u.seen(&u.prefetched, at.second)
}

// countAll counts an evaluation for all flags that no use of a flag can be added up for.
func (t *Tenant) countAll(environmentID string, reason Reason, by *Client, at Moment) {
	u := t.useOfAll(environmentID, at)
	u.cellOfReason(letterOf(reason)).n.add(1, &t.uses.node.striped)
	u.countCaller(by, at)
	u.seen(&u.evaluated, at.second)
}

// seen notes when a use has counted something, and has it written down.
func (u *use) seen(last *atomic.Uint32, second uint32) {
	later(last, second)
	if u.first.state.Load()&changed == 0 {
		u.place.tenant.uses.node.note(u)
	}
}

// later sets a second if it is after the one before. Of two that do so at once either may be left.
func later(last *atomic.Uint32, second uint32) {
	if last.Load() < second {
		last.Store(second)
	}
}

// countCaller counts an evaluation for who made it. It returns false for one that is not told apart.
func (u *use) countCaller(by *Client, at Moment) bool {
	c := u.callerOf(by, at)
	if c == nil {
		return false
	}
	later(&c.seen, at.second)
	c.n.add(1, &u.place.tenant.uses.node.striped)
	return true
}

// use finds the use of a list at a moment, or else adds one. It is nil for a flag of a life that is over.
func (t *Tenant) use(list *atomic.Pointer[use], key string, flag *Flag, environmentID string, at Moment) *use {
	var everywhere *use
	for u := list.Load(); u != nil; u = u.next.Load() {
		switch u.place.environmentID.Value() {
		case environmentID:
			if u.place.hour >= at.hour {
				return u
			}
			return t.addUse(key, flag, environmentID, at)
		case "":
			everywhere = u
		}
	}
	if everywhere != nil && everywhere.place.hour >= at.hour {
		return everywhere
	}
	return t.addUse(key, flag, environmentID, at)
}

// useOfAll is the use of all flags of the tenant.
func (t *Tenant) useOfAll(environmentID string, at Moment) *use {
	return t.use(&t.uses.all, "", nil, environmentID, at)
}

// addUse adds the use of a flag, or of all where flag is nil. Those of a list never go back to an earlier hour: what comes late counts in the later one.
func (t *Tenant) addUse(key string, flag *Flag, environmentID string, at Moment) *use {
	s := &t.uses
	s.mu.Lock()
	defer s.mu.Unlock()
	in, hour := unique.Make(environmentID), max(at.hour, s.floor)
	if flag == nil {
		return s.place(t, in, hour).all
	}
	current, ok := t.flags.Load(key)
	if !ok || current.life != flag.life {
		return nil
	}
	list := &current.uses
	before, next, shared := findUse(list, in)
	if next == nil && s.reached(t, at, maxUses, usesOf) {
		in = everywhere
		before, next, shared = findUse(list, in)
	}
	if next != nil && next.place.hour >= hour {
		return next
	}
	if shared == "" {
		shared = strings.Clone(key)
	}
	u := &use{place: s.place(t, in, hour), key: shared, life: flag.life}
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

// place is that of an environment in an hour, or in the later one that it has been used in.
func (s *tenantUses) place(t *Tenant, in unique.Handle[string], hour uint32) *place {
	p, ok := s.places[in]
	if ok && p.hour >= hour {
		return p
	}
	if s.places == nil {
		s.places = map[unique.Handle[string]]*place{}
	}
	p = &place{tenant: t, environmentID: in, hour: hour}
	s.places[in] = p
	if in == everywhere {
		return p
	}
	p.all = &use{place: p}
	before, last, _ := findUse(&s.all, in)
	if last != nil {
		p.all.next.Store(last.next.Load())
	}
	before.Store(p.all)
	return p
}

// findUse finds the use in an environment and what points to it. key is that of any use in the list.
func findUse(list *atomic.Pointer[use], in unique.Handle[string]) (before *atomic.Pointer[use], found *use, key string) {
	for before = list; ; before = &found.next {
		found = before.Load()
		if found == nil {
			return before, nil, key
		}
		if key = found.key; found.place.environmentID == in {
			return before, found, key
		}
	}
}

// cellOf finds the cell of a result, or adds it.
func (u *use) cellOf(r *Result, at Moment) *cell {
	if c := u.find(r); c != nil {
		return c
	}
	if c, _, _ := u.search(r); c != nil {
		return c
	}
	u.place.tenant.uses.mu.Lock()
	defer u.place.tenant.uses.mu.Unlock()
	return u.add(r, at)
}

// cellOfReason finds the cell of a reason's letter in a use of all flags, or adds it.
func (u *use) cellOfReason(letter uint32) *cell {
	if c := u.of(letter); c != nil {
		return c
	}
	u.place.tenant.uses.mu.Lock()
	defer u.place.tenant.uses.mu.Unlock()
	if c := u.of(letter); c != nil {
		return c
	}
	return u.addCell(nil, letter)
}

// callerOf finds the count of a client, or adds it; nil for one that does not get any.
func (u *use) callerOf(client *Client, at Moment) *caller {
	c, full := u.findCaller(client)
	if c != nil || full {
		return c
	}
	u.place.tenant.uses.mu.Lock()
	defer u.place.tenant.uses.mu.Unlock()
	return u.addCaller(client, at)
}

func usesOf(s *tenantUses) int64         { return s.count.Load() }
func callerPagesOf(s *tenantUses) int64  { return s.callerPages.Load() }
func outcomeBytesOf(s *tenantUses) int64 { return s.outcomeBytes.Load() }

// reached reports whether there is as much as may be, of a tenant or, where nobody pays for it, of all such tenants that its creator has.
func (s *tenantUses) reached(t *Tenant, at Moment, most int64, of func(*tenantUses) int64) bool {
	return of(s) >= most || s.node.created.reached(t, at.time(), most, of)
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
