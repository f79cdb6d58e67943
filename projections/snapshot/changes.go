package snapshot

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"flagledger/events"
)

// Change is a change of a flag, or of flags that depend on another one or on a segment.
type Change struct {
	Position    events.Position
	Time        time.Time // when the store recorded it
	Key         string
	Version     events.Revision
	Environment string // the id of the environment that changed, empty for all
	Deleted     bool
	// ClientSide says whether browsers see the flag after the change, WasClientSide whether they did before.
	ClientSide, WasClientSide bool
	// Dependents is set for a change of what flags depend on, which has no Key, Version or Deleted.
	Dependents *DependentsChange
}

const (
	// maxChanges limits the changes of all tenants that returning listeners can resume from: about 3 MB.
	maxChanges = 1 << 15
	// maxNamedDependents limits the dependents that these changes name: about 6 MB. Older changes name none.
	maxNamedDependents = 1 << 17
)

// changes caches the latest changes and wakes listeners.
type changes struct {
	mu              sync.RWMutex
	size            int             // the largest size of ring
	ring            []numbered      // change n is at (n-1) % size
	count           uint64          // the number of the last change
	named           int             // how many dependents the changes in ring name
	unnamed         uint64          // changes up to this number name no dependents
	evictedPosition events.Position // of the last change dropped from ring
	position        events.Position // listeners were informed of all changes up to it
	start           events.Position // the snapshot started here from its copy on disk: earlier changes are unknown
	// The snapshot holds all changes up to held; the last may not be published yet.
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

// announcement holds the changes of a page for listeners.
type announcement struct {
	changes  []pendingChange
	position events.Position
}

// tenantFeed is the part of changes for one tenant.
type tenantFeed struct {
	last      uint64 // the number of the tenant's last change
	listeners int
	more      chan struct{} // closed at the next change; nil without listeners
	applied   chan struct{} // closed once the snapshot holds the next change; nil unless Await waits
}

// note adds an event's change of a flag. wasClientSide and isClientSide say whether browsers saw it before and after.
// publish informs listeners of it.
func (c *changes) note(
	t *Tenant, key string, e events.Recorded, fact events.FlagFact,
	wasClientSide, isClientSide bool,
) {
	environment, deleted := concerns(fact)
	c.add(t, Change{
		Position: e.Position, Time: e.At, Key: key, Version: e.Revision, Environment: environment, Deleted: deleted,
		ClientSide: isClientSide && !deleted, WasClientSide: wasClientSide,
	})
}

func (c *changes) add(t *Tenant, change Change) {
	c.pending = append(c.pending, pendingChange{change, t})
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
	case events.PrerequisitesChanged:
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

// notifyAccess records that access to a tenant may have changed. publish wakes its listeners, so that they check.
func (c *changes) notifyAccess(t *Tenant) { c.accessChanged = append(c.accessChanged, t) }

// take returns the changes of a page in the snapshot. It wakes listeners at once if their access may have changed.
func (c *changes) take(position events.Position) announcement {
	a := announcement{changes: c.pending, position: position}
	c.pending = nil
	if len(c.accessChanged) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hold(position)
		for _, t := range c.accessChanged {
			t.feed.wake()
			t.feed.endWaits()
		}
		clear(c.accessChanged)
		c.accessChanged = c.accessChanged[:0]
	}
	return a
}

// publish informs listeners of changes. It does not wait for listeners.
func (c *changes) publish(a announcement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range a.changes {
		n := &a.changes[i]
		entry := numbered{n.Change, n.tenant.feed.last}
		if len(c.ring) < c.size {
			c.ring = append(c.ring, entry)
		} else {
			if c.unnamed+uint64(c.size) == c.count {
				c.dropNames()
			}
			at := &c.ring[c.count%uint64(c.size)]
			c.evictedPosition, *at = at.Position, entry
		}
		c.count++
		for c.named += entry.dependents(); c.named > maxNamedDependents; {
			c.dropNames()
		}
		n.tenant.feed.last = c.count
		n.tenant.feed.wake()
		n.tenant.feed.endWaits()
	}
	c.position = a.position
	c.hold(a.position)
}

// dropNames drops the names of dependents from the oldest change that may have some.
func (c *changes) dropNames() {
	c.unnamed++
	oldest := &c.ring[(c.unnamed-1)%uint64(c.size)]
	if n := oldest.dependents(); n > 0 {
		c.named -= n
		oldest.Dependents = &DependentsChange{SegmentKey: oldest.Dependents.SegmentKey, Many: true}
	}
}

// dependents counts the dependents that a change names.
func (c *Change) dependents() int {
	if c.Dependents == nil {
		return 0
	}
	return len(c.Dependents.Flags)
}

// begin drops the changes before a position. Listeners at another position get a gap.
func (c *changes) begin(at events.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start, c.position, c.held = at, at, at
}

// hold records the snapshot's position. The caller holds the lock.
func (c *changes) hold(position events.Position) {
	if c.held.Compare(position) < 0 {
		c.held = position
	}
}

// endWaits ends the waits for an announcement's changes, which the snapshot holds.
func (c *changes) endWaits(a announcement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold(a.position)
	for i := range a.changes {
		a.changes[i].tenant.feed.endWaits()
	}
}

func (f *tenantFeed) wake() {
	if f.listeners > 0 {
		close(f.more)
		f.more = make(chan struct{})
	}
}

func (f *tenantFeed) endWaits() {
	if f.applied != nil {
		close(f.applied)
		f.applied = nil
	}
}

// Listener follows the changes in one or all environments of a tenant until Close, which must be called once. A
// listener that is too slow gets a gap in place of dropped changes.
type Listener struct {
	changes     *changes
	tenant      *Tenant
	environment string          // its id, empty for all
	position    events.Position // it was informed of all changes up to it
	feed        bool            // wants changes of segments that no flag refers to
}

// Listen returns a listener for future changes in an environment, or in all if the id is empty. It returns nil if the
// tenant has `most` listeners already.
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

// Update holds the changes since a listener's last call.
type Update struct {
	Changes  []Change // in order
	Gap      bool     // changes before these may be missing
	Position events.Position
	More     <-chan struct{} // closed at the next change, or when access may have changed
	// Turn is how long to wait after More before the client is told. It is random, so that a tenant's listeners take
	// turns.
	Turn time.Duration
}

// timePerListener is how much later the last listener of a tenant has its turn for each that the tenant has. If a
// thousand wrote at once, the calls of other tenants would wait for them.
const timePerListener = 100 * time.Microsecond

// Next returns the changes since the last call, once. It sets Gap if the resumed position is too old or of a different
// log. That position may be ahead of this snapshot: another node's lists may have shown it sooner.
func (l *Listener) Next() Update {
	c := l.changes
	c.mu.RLock()
	defer c.mu.RUnlock()
	update := Update{
		Position: c.position,
		More:     l.tenant.feed.more,
		Turn:     rand.N(time.Duration(l.tenant.feed.listeners)*timePerListener + 1), //nolint:gosec // no secret
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
		if change, ok := l.part(entry.Change); ok {
			update.Changes = append(update.Changes, change)
		}
		n = entry.before
	}
	slices.Reverse(update.Changes)
	l.position = c.position
	return update
}

// part returns the part of a change that is in the listener's environment, and false if there is none.
func (l *Listener) part(c Change) (Change, bool) {
	switch {
	case c.Dependents == nil:
		return c, l.environment == "" || c.Environment == "" || c.Environment == l.environment
	case l.feed:
		return c, true
	default:
		c.Dependents = c.Dependents.In(l.environment)
		return c, c.Dependents != nil
	}
}

// Await waits until the snapshot holds a tenant's change at a position that another node announced, or until ctx ends.
func (s *Snapshot) Await(ctx context.Context, t *Tenant, position events.Position) {
	c := &s.changes
	for {
		c.mu.Lock()
		if t.feed.applied == nil {
			t.feed.applied = make(chan struct{})
		}
		applied, held := t.feed.applied, c.held
		c.mu.Unlock()
		if held.Compare(position) >= 0 {
			return
		}
		select {
		case <-applied:
		case <-ctx.Done():
			return
		}
	}
}

// LogName identifies the snapshot's log, equally on all nodes. Use it after Ready.
func (s *Snapshot) LogName() string { return *s.logName.Load() }
