package snapshot

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"flagledger/events"
)

// Change is what became of a flag.
type Change struct {
	Position    events.Position
	Time        time.Time
	Key         string
	Version     events.Revision
	Environment string // the id of the one that it concerns, empty where it concerns all
	Deleted     bool
}

// maxChanges is how many changes are remembered, of all tenants together, for listeners that come back: some 3 MB.
const maxChanges = 1 << 15

// changes remembers the latest changes and wakes who listens for them.
type changes struct {
	mu              sync.RWMutex
	size            int             // that ring may grow to
	ring            []numbered      // change n stands at (n-1) % size
	count           uint64          // of all changes so far, which is the number of the last one
	evictedPosition events.Position // the last change that is no longer in the ring
	position        events.Position // up to which listeners have been told

	// What the page that is being taken in brings. It is Run's own.
	pending       []pendingChange
	accessChanged []*Tenant
}

// numbered is a change with the number of the one before it in its tenant, 0 for the first.
type numbered struct {
	Change
	before uint64
}

type pendingChange struct {
	Change
	tenant *Tenant
}

// tenantFeed is what changes keeps of a tenant.
type tenantFeed struct {
	last      uint64 // the number of the tenant's last change
	listeners int
	more      chan struct{} // closed at the next change; nil while nobody listens
}

// note takes down what an event did to a flag.
func (c *changes) note(t *Tenant, key string, e events.Recorded, fact events.FlagFact) {
	environment, deleted := concerns(fact)
	c.pending = append(c.pending, pendingChange{Change{e.Position, e.Time, key, e.Revision, environment, deleted}, t})
}

// concerns tells which environment a fact is about, none where it is about the whole flag, and whether it ends the flag.
func concerns(fact events.FlagFact) (environmentID string, deleted bool) {
	switch fact := fact.(type) {
	case events.FlagEnabled:
		return fact.Environment.ID, false
	case events.FlagDisabled:
		return fact.Environment.ID, false
	case events.RulesChanged:
		return fact.Environment.ID, false
	case events.FallthroughChanged:
		return fact.Environment.ID, false
	case events.FlagDeleted:
		return "", true
	case events.FlagCreated, events.FlagUpdated, events.FlagStatusChanged, events.VariationAdded, events.VariationUpdated, events.VariationRemoved:
	}
	return "", false
}

// notifyAccess takes down that something else than a flag changed in a tenant: who may listen to it is to be asked again.
func (c *changes) notifyAccess(t *Tenant) { c.accessChanged = append(c.accessChanged, t) }

// publish tells the listeners what was taken down, all of which the snapshot holds by now. It waits for none of them.
func (c *changes) publish(position events.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.pending {
		n := &c.pending[i]
		entry := numbered{n.Change, n.tenant.feed.last}
		if len(c.ring) < c.size {
			c.ring = append(c.ring, entry)
		} else {
			at := &c.ring[c.count%uint64(c.size)]
			c.evictedPosition, *at = at.Position, entry
		}
		c.count++
		n.tenant.feed.last = c.count
		n.tenant.feed.wake()
	}
	for _, t := range c.accessChanged {
		t.feed.wake()
	}
	c.position = position
	clear(c.pending)
	clear(c.accessChanged)
	c.pending, c.accessChanged = c.pending[:0], c.accessChanged[:0]
}

func (f *tenantFeed) wake() {
	if f.listeners > 0 {
		close(f.more)
		f.more = make(chan struct{})
	}
}

// Listener hears what changes in one environment of a tenant. It must be closed, once. Nobody waits for it: one that does not ask for so long that
// changes have been forgotten is told of a gap.
type Listener struct {
	changes     *changes
	tenant      *Tenant
	environment string
	position    events.Position // up to which it has been told
}

// Listen begins to listen from now on. It returns nil where the tenant has that many listeners already.
func (s *Snapshot) Listen(t *Tenant, environmentID string, most int) *Listener {
	c := &s.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &t.feed
	if f.listeners >= most {
		return nil
	}
	if f.listeners++; f.listeners == 1 {
		f.more = make(chan struct{})
	}
	return &Listener{changes: c, tenant: t, environment: environmentID, position: c.position}
}

// Close ends listening.
func (l *Listener) Close() {
	l.changes.mu.Lock()
	defer l.changes.mu.Unlock()
	if l.tenant.feed.listeners--; l.tenant.feed.listeners == 0 {
		l.tenant.feed.more = nil
	}
}

// Resume lets the next Update begin after a position instead of at the time of Listen.
func (l *Listener) Resume(after events.Position) { l.position = after }

// Update is what a listener hears.
type Update struct {
	Changes  []Change // in order
	Gap      bool     // there may have been further changes, before these
	Position events.Position
	More     <-chan struct{} // closed when there is more to hear, or when who may listen may have changed
}

// Next tells what changed since the last time. The position that a listener resumed from leaves a gap where it is too old, and where the
// snapshot has not come that far: it is another node's, or none at all.
func (l *Listener) Next() Update {
	c := l.changes
	c.mu.RLock()
	defer c.mu.RUnlock()
	update := Update{Position: c.position, More: l.tenant.feed.more, Gap: l.position.Compare(c.position) > 0}
	for n := l.tenant.feed.last; n > 0; {
		if n+uint64(len(c.ring)) <= c.count {
			update.Gap = update.Gap || l.position.Compare(c.evictedPosition) < 0
			break
		}
		entry := &c.ring[(n-1)%uint64(c.size)]
		if entry.Position.Compare(l.position) <= 0 {
			break
		}
		if entry.Environment == "" || entry.Environment == l.environment {
			update.Changes = append(update.Changes, entry.Change)
		}
		n = entry.before
	}
	slices.Reverse(update.Changes)
	l.position = c.position
	return update
}

// Await waits until the snapshot holds a change of a tenant that stands at a position, as another node has told, or until ctx ends.
func (s *Snapshot) Await(ctx context.Context, t *Tenant, position events.Position) {
	l := s.Listen(t, "", math.MaxInt)
	defer l.Close()
	for {
		update := l.Next()
		if update.Position.Compare(position) >= 0 {
			return
		}
		select {
		case <-update.More:
		case <-ctx.Done():
			return
		}
	}
}

// FormatPosition writes a position for ParsePosition of any node to read, also later. It is for use after Ready.
func (s *Snapshot) FormatPosition(p events.Position) string { return s.engine + ":" + p.String() }

// ParsePosition reads what FormatPosition wrote. Of anything else, and of what was written on another engine, it makes nothing.
func (s *Snapshot) ParsePosition(text string) (events.Position, bool) {
	engine, numbers, _ := strings.Cut(text, ":")
	commit, prepare, _ := strings.Cut(numbers, "/")
	var p events.Position
	var commitErr, prepareErr error
	p.Commit, commitErr = strconv.ParseUint(commit, 10, 64)
	p.Prepare, prepareErr = strconv.ParseUint(prepare, 10, 64)
	return p, engine == s.engine && commitErr == nil && prepareErr == nil
}
