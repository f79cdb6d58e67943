package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"flagledger/events"
	"flagledger/events/state"
)

// Replica is a snapshot of one environment that a feed keeps current in place of the log. Its methods may be used while
// Apply runs, which one goroutine calls.
type Replica struct {
	*Snapshot
	tenant *Tenant // nil before the first ready; only Apply uses it
	// secrets has the secrets of signed contexts by signing id, if the feed has them.
	secrets *xsync.Map[string, []string]

	incoming *replicaState // since a reset, until ready
	pending  []FeedEvent   // since a ready without a reset, until the next
	current  replicaState  // as shown
}

// replicaState is everything that a feed has told.
type replicaState struct {
	environment FeedEnvironment
	flags       map[string]*state.Flag
	deleted     map[string]*state.Flag // that others require
	keys        map[string]*EvaluationKey
	segments    map[string]*state.Segment // also deleted ones that rules refer to
}

func newReplicaState(environment FeedEnvironment) replicaState {
	return replicaState{
		environment, map[string]*state.Flag{}, map[string]*state.Flag{}, map[string]*EvaluationKey{},
		map[string]*state.Segment{},
	}
}

// NewReplica returns a replica that holds nothing.
func NewReplica() *Replica {
	return &Replica{Snapshot: New(Options{}), secrets: xsync.NewMap[string, []string]()}
}

var errFeed = errors.New("the feed does not begin with a reset")

// Apply applies an event. What comes is shown at the next ready, and listeners are told of it then. Its error is of an
// event that the replica cannot read.
func (r *Replica) Apply(e FeedEvent) error {
	switch {
	case e.Type == FeedReset:
		if e.Version < 1 || e.Version > FeedVersion {
			return fmt.Errorf("the feed has version %d; this release reads versions up to %d", e.Version, FeedVersion)
		}
		if e.Environment == nil {
			return errors.New("the reset of the feed has no environment")
		}
		r.incoming, r.pending = new(newReplicaState(*e.Environment)), nil
		return nil
	case e.Type == FeedReady:
		return r.ready(e.Position)
	case r.incoming != nil:
		r.incoming.add(e)
		return nil
	case r.tenant == nil:
		return errFeed
	default:
		r.pending = append(r.pending, e)
		return nil
	}
}

// ready makes what has come known.
func (r *Replica) ready(id string) error {
	log, at, ok := ParseFeedID(id)
	if !ok {
		return fmt.Errorf("the feed has a ready with the position %q", id)
	}
	if r.incoming != nil {
		if r.tenant != nil && r.tenant.id != r.incoming.environment.TenantID {
			return errors.New("the feed now belongs to another tenant")
		}
		r.replace(*r.incoming)
		r.incoming = nil
	}
	if r.tenant == nil {
		return errFeed
	}
	r.change(r.pending...)
	r.pending = nil
	if r.LogName() != log || at.Compare(r.Position()) < 0 {
		r.changes.begin(at)
	}
	r.logName.Store(&log)
	r.position.Store(&at)
	pending := r.changes.take(at)
	for i := range pending.changes {
		pending.changes[i].Position = at
	}
	r.announce(pending)
	r.live.Store(true)
	r.becomeReady()
	return nil
}

// add takes the content of an event.
func (s *replicaState) add(e FeedEvent) {
	if e.Flag != nil {
		e.Flags = append(e.Flags, e.Flag)
	}
	if e.Key != nil {
		e.Keys = append(e.Keys, e.Key)
	}
	delete(s.flags, e.FlagKey)
	delete(s.deleted, e.FlagKey)
	if e.Deleted != nil {
		s.deleted[e.FlagKey] = e.Deleted
	}
	for _, flag := range e.Flags {
		s.flags[flag.Key] = flag
		delete(s.deleted, flag.Key)
	}
	for _, key := range e.Keys {
		s.keys[key.KeyID] = key
	}
	if u := e.Segment; u != nil {
		s.segments[u.State.Key] = u.Apply(s.segments[u.State.Key])
	}
	delete(s.segments, e.SegmentKey)
	delete(s.keys, e.KeyID)
}

// replace shows everything that has come since a reset.
func (r *Replica) replace(next replicaState) {
	if r.tenant == nil {
		r.tenant = newTenant(next.environment.TenantID)
	}
	before := r.current
	r.current = next
	r.showEnvironment()
	r.showKeys(before.keys)
	changed := changedKeys{flags: map[string]bool{}, segments: map[string]bool{}}
	for key := range before.segments {
		changed.segments[key] = next.segments[key] == nil
	}
	for key, segment := range next.segments {
		was := before.segments[key]
		changed.segments[key] = was == nil || was.Version != segment.Version || was.ID != segment.ID ||
			!bytes.Equal(was.Salt, segment.Salt) || was.SaltMissing != segment.SaltMissing
	}
	for key := range before.flags {
		changed.flags[key] = next.flags[key] == nil
	}
	for key, last := range next.deleted {
		was := before.deleted[key]
		changed.flags[key] = changed.flags[key] || was == nil || was.Version != last.Version
	}
	for key, flag := range next.flags {
		was := before.flags[key]
		changed.flags[key] = was == nil || was.Version != flag.Version || !sameExceptVersion(was, flag)
	}
	r.show(changed)
	r.tenants.Store(r.tenant.id, r.tenant)
}

// change shows what some events tell.
func (r *Replica) change(list ...FeedEvent) {
	keys := maps.Clone(r.current.keys)
	changed := changedKeys{flags: map[string]bool{}, segments: map[string]bool{}}
	for _, e := range list {
		if e.Type == FeedState {
			r.current.keys = map[string]*EvaluationKey{}
		}
		r.current.add(e)
		if e.Environment != nil {
			r.current.environment = *e.Environment
			r.showEnvironment()
		}
		if e.Flag != nil {
			changed.flags[e.Flag.Key] = true
		}
		if e.Segment != nil {
			changed.segments[e.Segment.State.Key] = true
		}
		changed.flags[e.FlagKey], changed.segments[e.SegmentKey] = true, true
	}
	r.show(changed)
	r.showKeys(keys)
}

// changedKeys are the flags and segments that are true.
type changedKeys struct{ flags, segments map[string]bool }

// show shows flags and segments as they are now: segments first, then flags after those that they require, so that no
// answer misses one. What is gone comes last.
func (r *Replica) show(changed changedKeys) {
	delete(changed.flags, "")
	delete(changed.segments, "")
	exists := func(key string) bool { return r.current.segments[key] != nil && r.current.segments[key].Exists }
	eachChanged(changed.segments, func(key string) {
		if exists(key) {
			r.showSegmentOf(key, r.current.segments[key])
		}
	})
	shown := map[string]bool{}
	var show func(key string)
	show = func(key string) {
		flag := r.current.flags[key]
		if shown[key] || flag == nil || !changed.flags[key] {
			return
		}
		shown[key] = true
		for _, required := range flag.RequiredFlags(r.current.environment.Environment.ID) {
			show(required)
		}
		r.showFlag(key, flag)
	}
	eachChanged(changed.flags, show)
	eachChanged(changed.flags, func(key string) {
		if r.current.flags[key] == nil {
			r.showFlag(key, nil)
		}
	})
	eachChanged(changed.segments, func(key string) {
		if !exists(key) {
			r.showSegmentOf(key, r.current.segments[key])
		}
	})
	maps.DeleteFunc(r.current.segments, func(key string, _ *state.Segment) bool {
		_, used := r.tenant.Segments().Last(key)
		return !used
	})
	maps.DeleteFunc(r.current.deleted, func(key string, _ *state.Flag) bool { return !r.tenant.dependents.requires(key) })
}

// eachChanged calls f with each key that is true, in order.
func eachChanged(keys map[string]bool, f func(key string)) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if keys[key] {
			f(key)
		}
	}
}

// Revoke removes all keys: the feed is refused, and can no longer tell which of them are gone.
func (r *Replica) Revoke() {
	if r.tenant == nil {
		return
	}
	r.change(FeedEvent{Type: FeedState})
	r.announce(r.changes.take(r.Position()))
}

func sameKey(a, b *EvaluationKey) bool {
	return reflect.DeepEqual(a.EvaluationKey, b.EvaluationKey) && reflect.DeepEqual(a.SigningSecrets, b.SigningSecrets)
}

func (r *Replica) showEnvironment() {
	environment := r.current.environment
	next := *r.tenant.state.Load()
	next.Exists = true
	next.Subscription = events.Subscription{Plan: environment.Plan}
	next.Environments = []events.EnvironmentRef{environment.Environment}
	next.AddedAt = map[string]time.Time{environment.Environment.ID: environment.AddedAt}
	r.tenant.state.Store(&next)
	r.changes.notifyAccess(r.tenant)
}

// showKeys shows the keys that are held, and removes the others of those before.
func (r *Replica) showKeys(before map[string]*EvaluationKey) {
	if maps.EqualFunc(before, r.current.keys, sameKey) {
		r.current.keys = before // which evaluationKeys has
		return
	}
	next := *r.tenant.state.Load()
	next.EvaluationKeys = map[string]state.EvaluationKey{}
	for id, key := range r.current.keys {
		next.EvaluationKeys[id] = key.EvaluationKey
	}
	r.tenant.state.Store(&next)
	for _, key := range r.current.keys {
		if key.tenant == nil { // callers may use the others
			key.TenantID, key.tenant = r.tenant.id, r.tenant
		}
		for id, secrets := range key.SigningSecrets {
			r.secrets.Store(id, secrets)
		}
		for _, hash := range key.Hashes() {
			r.evaluationKeys.Store(hash, key)
		}
	}
	for id, key := range before {
		if now := r.current.keys[id]; now == nil || !reflect.DeepEqual(now.Hashes(), key.Hashes()) {
			for _, hash := range key.Hashes() {
				if shown, ok := r.evaluationKeys.Load(hash); ok && shown == key {
					r.evaluationKeys.Delete(hash)
				}
			}
		}
	}
	r.changes.notifyAccess(r.tenant)
}

// versionOnly is the environment of changes of the version alone: feeds report them, streams of the replica's
// environment do not.
const versionOnly = "version only"

// showFlag shows a flag, or removes it for nil.
func (r *Replica) showFlag(key string, next *state.Flag) {
	t := r.tenant
	before, _ := t.flags.Load(key)
	change := Change{Key: key, Time: time.Now(), Deleted: next == nil}
	if before != nil {
		change.WasClientSide = before.State().ClientSide
	}
	t.flagsChanged.Store(new(r.Position()))
	r.count(before, -1)
	if next == nil {
		last := r.current.deleted[key]
		if last == nil {
			last = &state.Flag{FlagCreated: events.FlagCreated{TenantID: t.id, Key: key}}
		}
		t.showFlag(key, before, nil, last)
		t.keysGeneration.Add(1)
		r.addChange(change)
		return
	}
	after, err := newFlag(next, t.state.Load().Environments, before)
	if err != nil { // as in the service, the flag serves as far as it can
		r.faults.Add(1)
	}
	r.count(after, +1)
	t.showFlag(key, before, after, nil)
	if before == nil {
		t.keysGeneration.Add(1)
	}
	if before != nil && sameExceptVersion(before.State(), next) {
		change.Environment = versionOnly
	}
	change.Version, change.Time, change.ClientSide = next.Version, next.UpdatedAt, next.ClientSide
	r.addChange(change)
}

// addChange adds a change of a flag, and one of the flags that depend on it.
func (r *Replica) addChange(c Change) {
	r.changes.add(r.tenant, c)
	all := func(string) bool { return true }
	if dependents := r.tenant.flagChange(c.Key, all); dependents != nil && c.Environment != versionOnly {
		r.changes.add(r.tenant, Change{Time: c.Time, Dependents: dependents})
	}
}

// count adds n times a flag to its project, which exists while it has flags: the feed does not tell of projects.
func (r *Replica) count(f *Flag, n int64) {
	if f == nil {
		return
	}
	if id := f.State().ProjectID; id != "" {
		r.tenant.projects.LoadOrStore(id, &project{})
		r.tenant.count(f, n)
		if left, _ := r.tenant.ProjectFlags(id); left == 0 {
			r.tenant.projects.Delete(id)
		}
	}
}

// sameExceptVersion reports whether two states differ at most in their versions.
func sameExceptVersion(a, b *state.Flag) bool {
	first, second := *a, *b
	first.Version, first.UpdatedAt = second.Version, second.UpdatedAt
	return reflect.DeepEqual(first, second)
}

// Contents returns everything that the replica holds as events of a feed, from a reset to a ready. Call it between
// calls of Apply.
func (r *Replica) Contents() []FeedEvent {
	if r.tenant == nil {
		return nil
	}
	list := []FeedEvent{{Type: FeedReset, Version: FeedVersion, Environment: &r.current.environment}, {Type: FeedState}}
	for _, key := range r.current.keys {
		list[1].Keys = append(list[1].Keys, key)
	}
	for _, flag := range r.current.flags {
		list[1].Flags = append(list[1].Flags, flag)
	}
	for key, last := range r.current.deleted {
		list = append(list, FeedEvent{Type: FeedState, FlagKey: key, Deleted: last})
	}
	for _, segment := range r.current.segments {
		list = append(list, FeedEvent{Type: FeedState, Segment: newSegmentUpdate(nil, segment)})
	}
	return append(list, FeedEvent{Type: FeedReady, Position: r.feedID(r.Position())})
}

// SigningSecrets returns the secrets of signed contexts with an id. Which ids are valid is in the keys.
func (r *Replica) SigningSecrets(id string) ([]string, bool) { return r.secrets.Load(id) }

// OwnTenant returns the tenant of the feed, and false before the first ready.
func (r *Replica) OwnTenant() (*Tenant, bool) {
	for _, t := range r.tenants.All() {
		return t, true
	}
	return nil, false
}
