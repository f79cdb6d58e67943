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
	all *uses

	mu          sync.Mutex // held while uses are added and dropped, and while a flag is replaced
	places      map[unique.Handle[string]]*place
	count       int // of flags
	callerPages int
	floor       uint32              // the hour before which nothing counts any more: see sweep
	own         atomic.Pointer[use] // of all flags, by environment
}

const (
	// maxUses is how many environments of flags a node tells apart for a tenant in an hour; beyond it, it counts those of a flag together. All take 16 MiB.
	maxUses = 100_000
	// maxCallerPages is how many pages of callers a tenant's uses may have on a node: 20,000 flags with as many clients as a tenant can have. All take 52 MiB.
	maxCallerPages = 9 * 20_000
)

// Moment is when something is counted.
type Moment struct {
	hour, second uint32 // of the Unix time
}

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
func (t *Tenant) Moment(now time.Time) Moment { return t.uses.all.moment(now) }

// CountEvaluation counts what Evaluate of a flag with this key returned, in a call for that flag alone. by is nil for a person.
func (t *Tenant) CountEvaluation(key, environmentID string, r *Result, by *Client, at Moment) {
	t.countFlag(key, environmentID, r, by, at)
	u := t.ownUse(environmentID, at)
	t.ownCell(u, r.Reason).increment(t.uses.all)
	u.countCaller(by, 1, at)
	u.seen(&u.evaluated, at)
}

// CountMany counts what a call for many flags has evaluated, and whether it was for all flags. by is nil for a person.
func (t *Tenant) CountMany(y *Tally, all bool, environmentID string, by *Client, at Moment) {
	if all {
		for i, key := range y.keys {
			t.countPrefetch(key, environmentID, y.prefetched[i], at)
		}
		u := t.ownUse(environmentID, at)
		u.prefetches.Add(1)
		u.seen(&u.prefetched, at)
		return
	}
	if len(y.keys) == 0 {
		return
	}
	u := t.ownUse(environmentID, at)
	for i, key := range y.keys {
		r := &y.evaluated[i]
		t.countFlag(key, environmentID, r, by, at)
		t.ownCell(u, r.Reason).n.Add(1)
	}
	u.countCaller(by, uint64(len(y.keys)), at)
	u.seen(&u.evaluated, at)
}

// countFlag counts an evaluation for its flag, and for who made it.
func (t *Tenant) countFlag(key, environmentID string, r *Result, by *Client, at Moment) {
	if u := t.countOutcome(key, environmentID, r, at); u != nil {
		u.countCaller(by, 1, at)
		u.seen(&u.evaluated, at)
	}
}

// countOutcome counts an evaluation for its flag, outcome and reason.
func (t *Tenant) countOutcome(key, environmentID string, r *Result, at Moment) *use {
	u := t.use(&r.flag.uses, key, r.flag, environmentID, at)
	if u == nil {
		return nil
	}
	c := u.find(r)
	if c == nil {
		c = t.cell(u, r)
	}
	c.increment(t.uses.all)
	return u
}

func (t *Tenant) countPrefetch(key, environmentID string, flag *Flag, at Moment) {
	if u := t.use(&flag.uses, key, flag, environmentID, at); u != nil {
		u.prefetches.Add(1)
		u.seen(&u.prefetched, at)
	}
}

// seen notes when a use has counted something, and has it written down.
func (u *use) seen(last *atomic.Uint32, at Moment) {
	if last.Load() < at.second {
		last.Store(at.second)
	}
	if !u.changed.Load() {
		u.place.tenant.uses.all.note(u)
	}
}

func (u *use) countCaller(by *Client, n uint64, at Moment) {
	if by == nil {
		by = people
	}
	c, full := u.callerOf(by)
	if c == nil && !full {
		c = u.place.tenant.caller(u, by)
	}
	if c == nil {
		return
	}
	if c.seen.Load() < at.second {
		c.seen.Store(at.second)
	}
	c.n.Add(n)
}

// use finds the use of a list at a moment, or else adds one. It is nil for a flag of a life that is over.
func (t *Tenant) use(list *atomic.Pointer[use], key string, flag *Flag, environmentID string, at Moment) *use {
	var everywhere *use
	for u := list.Load(); u != nil; u = u.next.Load() {
		switch u.place.environmentID.Value() {
		case environmentID:
			if u.hour >= at.hour {
				return u
			}
			return t.addUse(key, flag, environmentID, at)
		case "":
			everywhere = u
		}
	}
	if everywhere != nil && everywhere.hour >= at.hour {
		return everywhere
	}
	return t.addUse(key, flag, environmentID, at)
}

// ownUse is the use of all flags of the tenant.
func (t *Tenant) ownUse(environmentID string, at Moment) *use {
	return t.use(&t.uses.own, "", nil, environmentID, at)
}

// addUse adds the use of a flag, or of the tenant where flag is nil. Those of a list never go back to an earlier hour: what comes late counts in the later one.
func (t *Tenant) addUse(key string, flag *Flag, environmentID string, at Moment) *use {
	s := &t.uses
	s.mu.Lock()
	defer s.mu.Unlock()
	list, life := &s.own, uint32(0)
	if flag != nil {
		current, ok := t.flags.Load(key)
		if !ok || current.life != flag.life {
			return nil
		}
		list, life = &current.uses, flag.life
	}
	in, hour := unique.Make(environmentID), max(at.hour, s.floor)
	before, next, shared := findUse(list, in)
	if next == nil && flag != nil && s.count >= maxUses {
		in = unique.Make("")
		before, next, shared = findUse(list, in)
	}
	if next != nil && next.hour >= hour {
		return next
	}
	if shared == "" {
		shared = strings.Clone(key)
	}
	u := &use{place: s.place(t, in), key: shared, life: life, hour: hour}
	if next != nil {
		s.callerPages -= next.pages()
		u.next.Store(next.next.Load())
	} else {
		u.next.Store(list.Load())
		before = list
		if flag != nil {
			s.count++
		}
	}
	before.Store(u)
	return u
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

func (s *tenantUses) place(t *Tenant, in unique.Handle[string]) *place {
	p, ok := s.places[in]
	if !ok {
		if s.places == nil {
			s.places = map[unique.Handle[string]]*place{}
		}
		p = &place{t, in}
		s.places[in] = p
	}
	return p
}

// cell finds the cell of a result, or adds it.
func (t *Tenant) cell(u *use, r *Result) *cell {
	if c, _, _ := u.search(r); c != nil {
		return c
	}
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	return u.add(r)
}

// ownCell is the cell of a reason in a use of all flags.
func (t *Tenant) ownCell(u *use, reason Reason) *cell {
	if c := u.of(reason); c != nil {
		return c
	}
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	if c := u.of(reason); c != nil {
		return c
	}
	return u.addCell(nil, reason)
}

func (t *Tenant) caller(u *use, by *Client) *caller {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	return u.addCaller(by)
}

// replace puts a flag in the place of another, nil for none, and hands its uses on if it has the same life.
func (t *Tenant) replace(key string, before, after *Flag) {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	if before != nil {
		if after != nil && after.life == before.life {
			after.uses.Store(before.uses.Load())
		} else {
			t.uses.drop(before)
		}
	}
	if after == nil {
		t.flags.Delete(key)
		return
	}
	t.flags.Store(strings.Clone(key), after) // else the key would keep the stream's name in memory
}

// drop takes the uses of a flag that is gone out of the tenant's.
func (s *tenantUses) drop(f *Flag) {
	for u := f.uses.Load(); u != nil; u = u.next.Load() {
		s.count--
		s.callerPages -= u.pages()
	}
}

// clearFlags removes all flags of a tenant that is deleted.
func (t *Tenant) clearFlags() {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	t.flags.Clear()
}
