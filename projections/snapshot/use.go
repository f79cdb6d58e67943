package snapshot

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"unique"

	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage/counted"
)

// use is how often a flag, or with an empty key all of a tenant, was used in an environment in an hour. Its counts only
// grow: who writes them down writes all of them again and again. There is one on a node for each flag, life,
// environment and hour.
type use struct {
	next        atomic.Pointer[use] // of the same flag, in another environment
	in          *environmentHour
	key         string
	life        uint32        // see Flag
	evaluated   atomic.Uint32 // when last, a second of the Unix time; 0 before the first
	prefetched  atomic.Uint32
	prefetches  atomic.Uint32 // in an hour there cannot be more
	firstCaller caller        // none in a use of all flags
	callers     atomic.Pointer[callers]
	first       cell // its state says also whether the use is among those that are to be written down
}

// environmentHour is an environment of a tenant in an hour.
type environmentHour struct {
	tenant        *Tenant
	environmentID unique.Handle[string] // "" where environments are not told apart
	hour          uint32                // of the Unix time
	// of all flags, to which those of each are added when they are taken; nil where environments are not told apart
	all *use
}

// cell counts the evaluations with an outcome and a reason. The outcome is a variation, or a value alone in one without
// an id; nil in the uses of tenants.
//
// Most evaluations of a flag are by the first caller of its use. They are counted once, for the outcome and the caller
// together; those by another are counted in its laterCaller, too.
type cell struct {
	byOthers counter // in a use of all flags, all
	byFirst  counter
	served   atomic.Pointer[evaluation.Variation]
	next     atomic.Pointer[cell]
	state    atomic.Uint32 // the reason's code, 0 before the first evaluation; and the marks below
	// how much of the count has been added to the use of all flags, without what does not fit; only TakeUses uses it
	added uint32
	bytes uint32 // that count for it among those of a tenant; 0 for a use's first cell, which stands in it
}

// total is how many evaluations it has counted.
func (c *cell) total() uint64 { return c.byOthers.load() + c.byFirst.load() }

const (
	reasonMask      = 0xff  // of state
	outcomeWritten  = 0x100 // set once whoever writes down has the outcome
	queued          = 0x200 // of a use's first cell: it is among those that are to be written down
	repeatedOutcome = 0x400 // set where a cell before it has the same outcome, with another reason
	detached        = 0x800 // of a use's first cell: no flag has it any more, and its tenant's uses are without it
)

// restOutcome is the outcome of all beyond the first maxOutcomes.
var restOutcome = &evaluation.Variation{ID: "others"}

const (
	maxOutcomes = counted.MaxOutcomes
	maxCallers  = 1 + callerPages*perCallerPage // one less in a use of all flags
)

// caller is a client, or people, who made evaluations. client is nil in one that is free.
type caller struct {
	client atomic.Pointer[Client]
	seen   atomic.Uint32 // the last second
	added  uint32        // as that of cell
}

// take gives the place to a client. It returns false if another client has it.
func (c *caller) take(client *Client) bool {
	if held := c.client.Load(); held != nil && held.ID != client.ID {
		return false
	}
	c.client.Store(client) // the place was free, or the client has a new secret
	return true
}

// laterCaller is a caller that is not the first of a use, with how often it made evaluations.
type laterCaller struct {
	caller
	n counter
}

// people is the caller that all people are together.
var people = &Client{}

// callers are some of those after the first; in a use of all flags, of all.
type callers struct {
	next atomic.Pointer[callers]
	of   [perCallerPage]laterCaller
}

// A tenant has 100 clients at most at once. People are one more, and some clients may have been replaced within the
// hour.
const (
	perCallerPage = 11
	callerPages   = 10
)

// reasonCode tells reasons apart: no two begin with the same letter.
func reasonCode(r evaluation.Reason) uint32 { return uint32(r[0]) }

// findByPointer returns the cell of a result's outcome and reason without comparing texts. nil says nothing: see find.
func (u *use) findByPointer(r *Result) *cell {
	reason := reasonCode(r.Reason)
	for c := &u.first; c != nil; c = c.next.Load() {
		if c.state.Load()&reasonMask != reason {
			continue
		}
		served := c.served.Load()
		if served == r.Variation || r.Variation == nil && served.ID == "" && sameMemory(served.Value, r.Value) {
			return c
		}
	}
	return nil
}

// sameMemory reports whether two values are one in memory.
func sameMemory(a, b json.RawMessage) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// find finds the cell of a result's outcome and reason, or that of the rest if no more outcomes may be told apart, or
// else nil. outcomes is how many there are with any reason, maxOutcomes where there is a rest.
func (u *use) find(r *Result) (found *cell, outcomes int, known bool) {
	reason := reasonCode(r.Reason)
	var rest *cell
	full := false
	for c := &u.first; c != nil; c = c.next.Load() {
		state := c.state.Load()
		if state&reasonMask == 0 {
			break
		}
		served, same := c.served.Load(), state&reasonMask == reason
		switch {
		case served == restOutcome:
			if full = true; same {
				rest = c
			}
			continue
		case (same || state&repeatedOutcome == 0) && sameOutcome(served, r):
			if known = true; same {
				if served != r.Variation {
					c.refresh(r)
				}
				return c, outcomes, known
			}
		}
		if state&repeatedOutcome == 0 {
			outcomes++
		}
	}
	if full {
		outcomes = maxOutcomes
	}
	if !known && outcomes >= maxOutcomes {
		return rest, outcomes, known
	}
	return nil, outcomes, known
}

// sameOutcome reports whether a result is of the same outcome: of a variation whatever its value, or of a value
// without one.
func sameOutcome(v *evaluation.Variation, r *Result) bool {
	return v.ID == r.VariationID && (v.ID != "" || bytes.Equal(v.Value, r.Value)) // values may be long
}

// refresh takes what a result has as the outcome, which is the same: it is found faster then. Its name and value may be
// others, which are to be written down.
func (c *cell) refresh(r *Result) {
	if before := c.served.Swap(outcomeOf(r)); before.Name != r.VariationName || !bytes.Equal(before.Value, r.Value) {
		c.state.And(^uint32(outcomeWritten))
	}
}

// What flags without variations serve mostly.
var (
	trueAlone  = &evaluation.Variation{Value: evaluation.True}
	falseAlone = &evaluation.Variation{Value: evaluation.False}
)

func outcomeOf(r *Result) *evaluation.Variation {
	switch {
	case r.Variation != nil:
		return r.Variation
	case sameMemory(r.Value, evaluation.True):
		return trueAlone
	case sameMemory(r.Value, evaluation.False):
		return falseAlone
	default:
		return &evaluation.Variation{Value: r.Value}
	}
}

// add makes the cell of a result, or of the rest. The tenant's uses are locked.
func (u *use) add(r *Result, now CountTime) *cell {
	found, outcomes, known := u.find(r)
	if found != nil {
		return found
	}
	t, served, state := u.in.tenant, outcomeOf(r), reasonCode(r.Reason)
	first := u.first.state.Load()&reasonMask == 0
	switch {
	case known:
		state |= repeatedOutcome
	case outcomes >= maxOutcomes, !first && t.uses.limitReached(t, now, maxOutcomeBytes, outcomeBytesOf):
		served = restOutcome
	}
	c := u.addCell(served, state)
	if u.first.state.Load()&detached == 0 {
		t.uses.outcomeBytes.Add(int64(c.bytes))
	}
	return c
}

// outcomeBytes is how much memory its outcomes take, about, with the values that they keep.
func (u *use) outcomeBytes() (bytes int64) {
	for c := u.first.next.Load(); c != nil; c = c.next.Load() {
		bytes += int64(c.bytes)
	}
	return bytes
}

func (u *use) addCell(served *evaluation.Variation, state uint32) *cell {
	c := &u.first
	for c.state.Load()&reasonMask != 0 {
		next := c.next.Load()
		if next == nil {
			next = &cell{bytes: cellBytes}
			if served != nil {
				next.bytes += uint32(len(served.Value))
			}
			next.served.Store(served)
			next.state.Store(state)
			c.next.Store(next)
			return next
		}
		c = next
	}
	c.served.Store(served)
	c.state.Or(state)
	return c
}

// ofReason returns the cell of a reason in a use of all flags, nil if there is none.
func (u *use) ofReason(reason uint32) *cell {
	for c := &u.first; c != nil; c = c.next.Load() {
		if c.state.Load()&reasonMask == reason {
			return c
		}
	}
	return nil
}

// findCaller finds a client among the callers after the first; c is nil if it is not there. full reports that there is
// no room for another.
func (u *use) findCaller(client *Client) (c *laterCaller, full bool) {
	pages := 0
	for page := u.callers.Load(); page != nil; page = page.next.Load() {
		for i := range page.of {
			switch page.of[i].client.Load() {
			case client:
				return &page.of[i], false
			case nil:
				return nil, false
			}
		}
		pages++
	}
	return nil, pages == callerPages
}

// changedCaller finds a client whose secret has changed since it was first counted. Its results are those of callerOf.
func (u *use) changedCaller(client *Client) (c *laterCaller, first bool) {
	if held := u.firstCaller.client.Load(); held != nil && held.ID == client.ID {
		return nil, true
	}
	for page := u.callers.Load(); page != nil; page = page.next.Load() {
		for i := range page.of {
			if page.of[i].client.Load().ID == client.ID {
				return &page.of[i], false
			}
		}
	}
	return nil, false
}

// addCaller adds a client to the callers, while there is a free place and the tenant has memory for it. Its results are
// those of callerOf. The tenant's uses are locked.
func (u *use) addCaller(client *Client, now CountTime) (c *laterCaller, first bool) {
	if u.key != "" && u.firstCaller.take(client) {
		return nil, true
	}
	at := &u.callers
	for range callerPages {
		page := at.Load()
		if page == nil {
			if t := u.in.tenant; u.key != "" && u.first.state.Load()&detached == 0 { // the uses of all flags are few
				if t.uses.limitReached(t, now, maxCallerPages, callerPagesOf) {
					return nil, false
				}
				t.uses.callerPages.Add(1)
			}
			page = &callers{}
			page.of[0].client.Store(client)
			at.Store(page)
			return &page.of[0], false
		}
		for i := range page.of {
			if page.of[i].take(client) {
				return &page.of[i], false
			}
		}
		at = &page.next
	}
	return nil, false
}

// drop takes a use that no flag has any more out of the tenant's, which are locked. Whoever has found it already may
// still count in it.
func (u *use) drop() {
	s := &u.in.tenant.uses
	s.count.Add(-1)
	s.callerPages.Add(-int64(u.pages()))
	s.outcomeBytes.Add(-u.outcomeBytes())
	u.first.state.Or(detached)
}

// pages is how many pages of callers it has.
func (u *use) pages() (n int) {
	for page := u.callers.Load(); page != nil; page = page.next.Load() {
		n++
	}
	return n
}

// uses are those of a node that are to be written down.
type uses struct {
	created        *createdTenants
	flags, tenants useQueue
	// the hour that everything counts in while too much of past hours waits to be written down; 0 mostly
	frozen  atomic.Uint32
	swept   atomic.Uint32 // the hour before which sweepUses has dropped all
	striped atomic.Int64  // how many counters have got stripes in this hour
	maxPast int           // see the constant
}

// useQueue are uses that have counted something and wait to be written down.
type useQueue struct {
	mu   sync.Mutex
	uses []*use
}

func (q *useQueue) add(more ...*use) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.uses = append(q.uses, more...)
}

// giveBack takes what was taken and is not written down: before all that has come meanwhile, so that nobody who counts
// without end keeps others waiting.
func (q *useQueue) giveBack(list []*use) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.uses = slices.Concat(list, q.uses)
}

func (q *useQueue) take() []*use {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.uses
	q.uses = nil
	return taken
}

// enqueue has a use written down that has counted something.
func (all *uses) enqueue(u *use) {
	switch {
	case u.first.state.Load()&queued != 0 || u.first.state.Or(queued)&queued != 0:
	case u.key == "":
		all.tenants.add(u)
	default:
		all.flags.add(u)
	}
}
