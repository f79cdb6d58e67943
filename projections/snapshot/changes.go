package snapshot

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"flagledger/events"
)

// Change tells that a flag has changed.
type Change struct {
	Position    events.Position
	Time        time.Time // when the store recorded it
	Key         string
	Version     events.Revision
	Environment string // the id of the environment that changed, empty for all
	Deleted     bool
}

// maxChanges is how many changes of all tenants are kept for listeners that come back: about 3 MB.
const maxChanges = 1 << 15

// changes keeps the latest changes and wakes listeners.
type changes struct {
	mu              sync.RWMutex
	size            int             // the largest size of ring
	ring            []numbered      // change n is at (n-1) % size
	count           uint64          // of all changes so far: the number of the last one
	evictedPosition events.Position // of the last change that is no longer in ring
	position        events.Position // listeners have been told of all changes up to it
	start           events.Position // changes up to it were never here: the snapshot began with its copy on disk
	// the snapshot holds all changes up to it, of which the last may not have been told yet
	held events.Position

	// The changes of the page that is being applied. Only Run uses them.
	pending       []pendingChange
	accessChanged []*Tenant
}

// numbered is a change with the number of the tenant's change before it, 0 for the first.
type numbered struct {
	Change
	before uint64
}

type pendingChange struct {
	Change
	tenant *Tenant
}

// announcement is what listeners are told of a page.
type announcement struct {
	changes  []pendingChange
	position events.Position
}

// tenantFeed is what changes needs for each tenant.
type tenantFeed struct {
	last      uint64 // the number of the tenant's last change
	listeners int
	more      chan struct{} // closed at the next change; nil without listeners
}

// note adds the change that an event made to a flag. publish tells listeners of it.
func (c *changes) note(t *Tenant, key string, e events.Recorded, fact events.FlagFact) {
	environment, deleted := concerns(fact)
	c.pending = append(c.pending, pendingChange{Change{e.Position, e.At, key, e.Revision, environment, deleted}, t})
}

// concerns returns the environment that a fact is about, empty for the whole flag, and whether it deletes the flag.
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
	case events.FlagCreated,
		events.FlagUpdated,
		events.FlagStatusChanged,
		events.VariationAdded,
		events.VariationUpdated,
		events.VariationRemoved,
		events.FlagReverted:
	}
	return "", false
}

// notifyAccess notes that who may listen to a tenant may have changed. publish wakes its listeners, so that they check.
func (c *changes) notifyAccess(t *Tenant) { c.accessChanged = append(c.accessChanged, t) }

// take returns the changes noted for a page, which the snapshot must hold. Listeners whose access may have changed are
// woken at once.
func (c *changes) take(position events.Position) announcement {
	a := announcement{changes: c.pending, position: position}
	c.pending = nil
	if len(c.accessChanged) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, t := range c.accessChanged {
			t.feed.wake()
		}
		clear(c.accessChanged)
		c.accessChanged = c.accessChanged[:0]
	}
	return a
}

// publish tells listeners of changes. It does not wait for listeners.
func (c *changes) publish(a announcement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range a.changes {
		n := &a.changes[i]
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
	c.position = a.position
	c.hold(a.position)
}

// hold notes that the snapshot holds a position, with the lock held.
func (c *changes) hold(position events.Position) {
	if c.held.Compare(position) < 0 {
		c.held = position
	}
}

// wake makes the listeners of the tenants that an announcement is about look again.
func (c *changes) wake(a announcement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold(a.position)
	for i := range a.changes {
		a.changes[i].tenant.feed.wake()
	}
}

func (f *tenantFeed) wake() {
	if f.listeners > 0 {
		close(f.more)
		f.more = make(chan struct{})
	}
}

// Listener follows the changes in one environment of a tenant, or in all, until it is closed, once. One that is too
// slow, so that changes have been dropped meanwhile, is told of a gap.
type Listener struct {
	changes     *changes
	tenant      *Tenant
	environment string          // its id, empty for all
	position    events.Position // it has been told of all changes up to it
}

// Listen returns a listener for the changes from now on in an environment, or in all where its id is empty; or nil if
// the tenant already has as many listeners as most.
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

// Close removes the listener.
func (l *Listener) Close() {
	l.changes.mu.Lock()
	defer l.changes.mu.Unlock()
	if l.tenant.feed.listeners--; l.tenant.feed.listeners == 0 {
		l.tenant.feed.more = nil
	}
}

// Resume makes the next Update begin after a position instead of at the time of Listen.
func (l *Listener) Resume(after events.Position) { l.position = after }

// Update is what has changed since a listener asked last.
type Update struct {
	Changes  []Change // in order
	Gap      bool     // changes before these may be missing
	Position events.Position
	More     <-chan struct{} // closed at the next change, or when who may listen may have changed
}

// Next returns what has changed since the last call, once, with a gap if the position that was resumed from is too old
// or is another log's. That position may be further than what is told here: another node's lists showed it sooner.
func (l *Listener) Next() Update {
	c := l.changes
	c.mu.RLock()
	defer c.mu.RUnlock()
	update := Update{
		Position: c.position,
		More:     l.tenant.feed.more,
		Gap:      l.position.Compare(c.held) > 0 || l.position.Compare(c.start) < 0,
	}
	if !update.Gap && l.position.Compare(c.position) > 0 {
		update.Position = l.position
		return update
	}
	for n := l.tenant.feed.last; n > 0; {
		if n+uint64(len(c.ring)) <= c.count {
			update.Gap = update.Gap || l.position.Compare(c.evictedPosition) < 0
			break
		}
		entry := &c.ring[(n-1)%uint64(c.size)]
		if entry.Position.Compare(l.position) <= 0 {
			break
		}
		if l.environment == "" || entry.Environment == "" || entry.Environment == l.environment {
			update.Changes = append(update.Changes, entry.Change)
		}
		n = entry.before
	}
	slices.Reverse(update.Changes)
	l.position = c.position
	return update
}

// Await waits until the snapshot holds a tenant's change at a position, which another node has told of, or until ctx
// ends.
func (s *Snapshot) Await(ctx context.Context, t *Tenant, position events.Position) {
	l := s.Listen(t, "", math.MaxInt)
	defer l.Close()
	for {
		update := l.Next()
		if s.Position().Compare(position) >= 0 {
			return
		}
		select {
		case <-update.More:
		case <-ctx.Done():
			return
		}
	}
}

// LogName tells the log that the snapshot holds apart from others, on all nodes alike. It may be used after Ready.
func (s *Snapshot) LogName() string { return *s.logName.Load() }
