package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
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

	arriving *replicaState // since a reset, until ready
	held     replicaState
}

// replicaState is everything that a feed has told.
type replicaState struct {
	environment FeedEnvironment
	flags       map[string]*state.Flag
	keys        map[string]*EvaluationKey
}

func newReplicaState(environment FeedEnvironment) replicaState {
	return replicaState{environment, map[string]*state.Flag{}, map[string]*EvaluationKey{}}
}

// NewReplica returns a replica that holds nothing.
func NewReplica() *Replica {
	return &Replica{Snapshot: New(Options{}), secrets: xsync.NewMap[string, []string]()}
}

var errFeed = errors.New("the feed does not begin with a reset")

// Apply applies an event. What comes between a reset and its ready is shown at once, at the ready. Its error is of an
// event that the replica cannot read.
func (r *Replica) Apply(e FeedEvent) error {
	if e.Type == FeedReset {
		if e.Version != FeedVersion || e.Environment == nil {
			return fmt.Errorf("the feed has version %d, and this release reads %d", e.Version, FeedVersion)
		}
		r.arriving = new(newReplicaState(*e.Environment))
		return nil
	}
	if r.arriving != nil {
		r.arriving.add(e)
		if e.Type != FeedReady {
			return nil
		}
		next := *r.arriving
		r.arriving = nil
		return r.replace(next, e.Position)
	}
	if r.tenant == nil {
		return errFeed
	}
	return r.change(e)
}

// add takes the content of an event.
func (s *replicaState) add(e FeedEvent) {
	if e.Flag != nil {
		e.Flags = append(e.Flags, e.Flag)
	}
	if e.Key != nil {
		e.Keys = append(e.Keys, e.Key)
	}
	for _, flag := range e.Flags {
		s.flags[flag.Key] = flag
	}
	for _, key := range e.Keys {
		s.keys[key.KeyID] = key
	}
	delete(s.flags, e.FlagKey)
	delete(s.keys, e.KeyID)
}

// replace shows everything that has come since a reset.
func (r *Replica) replace(next replicaState, position string) error {
	if r.tenant != nil && r.tenant.id != next.environment.TenantID {
		return errors.New("the feed has become one of another tenant")
	}
	log := r.LogName()
	at, err := r.moveTo(position)
	if err != nil {
		return err
	}
	if r.tenant == nil {
		r.tenant = newTenant(next.environment.TenantID)
	}
	if r.LogName() != log {
		r.changes.begin(at)
	}
	before := r.held
	r.held = next
	r.showEnvironment()
	r.showKeys(before.keys)
	for key := range before.flags {
		if next.flags[key] == nil {
			r.showFlag(key, nil, at)
		}
	}
	for key, flag := range next.flags {
		if was := before.flags[key]; was == nil || was.Version != flag.Version || !sameTargeting(was, flag) {
			r.showFlag(key, flag, at)
		}
	}
	r.tenants.Store(r.tenant.id, r.tenant)
	r.finish(at)
	r.live.Store(true)
	r.becomeReady()
	return nil
}

// change shows a change of one flag or of keys.
func (r *Replica) change(e FeedEvent) error {
	at, err := r.moveTo(e.Position)
	if err != nil {
		return err
	}
	keys := maps.Clone(r.held.keys)
	if e.Type == FeedState {
		r.held.keys = map[string]*EvaluationKey{}
	}
	r.held.add(e)
	if e.Environment != nil {
		r.held.environment = *e.Environment
		r.showEnvironment()
	}
	if e.Flag != nil {
		r.showFlag(e.Flag.Key, e.Flag, at)
	}
	if e.FlagKey != "" {
		r.showFlag(e.FlagKey, nil, at)
	}
	r.showKeys(keys)
	r.finish(at)
	return nil
}

// moveTo reads the position of an event.
func (r *Replica) moveTo(id string) (events.Position, error) {
	log, position, ok := ParseFeedID(id)
	if !ok {
		return position, fmt.Errorf("the feed has an event with the position %q", id)
	}
	r.logName.Store(&log)
	return position, nil
}

// finish makes the position known, and informs listeners.
func (r *Replica) finish(at events.Position) {
	r.position.Store(&at)
	r.announce(r.changes.take(at))
}

func sameKey(a, b *EvaluationKey) bool {
	return reflect.DeepEqual(a.EvaluationKey, b.EvaluationKey) && reflect.DeepEqual(a.SigningSecrets, b.SigningSecrets)
}

func (r *Replica) showEnvironment() {
	of := r.held.environment
	next := *r.tenant.state.Load()
	next.Exists = true
	next.Subscription = events.Subscription{Plan: of.Plan}
	next.Environments = []events.EnvironmentRef{of.Environment}
	next.AddedAt = map[string]time.Time{of.Environment.ID: of.AddedAt}
	r.tenant.state.Store(&next)
	r.changes.notifyAccess(r.tenant)
}

// showKeys shows the keys that are held, and removes the others of those before.
func (r *Replica) showKeys(before map[string]*EvaluationKey) {
	if maps.EqualFunc(before, r.held.keys, sameKey) {
		r.held.keys = before // which evaluationKeys has
		return
	}
	next := *r.tenant.state.Load()
	next.EvaluationKeys = map[string]state.EvaluationKey{}
	for id, key := range r.held.keys {
		next.EvaluationKeys[id] = key.EvaluationKey
	}
	r.tenant.state.Store(&next)
	for _, key := range r.held.keys {
		key.TenantID, key.tenant = r.tenant.id, r.tenant
		for id, secrets := range key.SigningSecrets {
			r.secrets.Store(id, secrets)
		}
		for _, hash := range key.Hashes() {
			r.evaluationKeys.Store(hash, key)
		}
	}
	for id, key := range before {
		if now := r.held.keys[id]; now == nil || !reflect.DeepEqual(now.Hashes(), key.Hashes()) {
			for _, hash := range key.Hashes() {
				if shown, ok := r.evaluationKeys.Load(hash); ok && shown == key {
					r.evaluationKeys.Delete(hash)
				}
			}
		}
	}
	r.changes.notifyAccess(r.tenant)
}

// elsewhere is the environment of changes that only gave a flag another version: feeds are told of them, and streams of
// the replica's environment are not.
const elsewhere = "elsewhere"

// showFlag shows a flag, or removes it for nil.
func (r *Replica) showFlag(key string, next *state.Flag, at events.Position) {
	t := r.tenant
	before, _ := t.flags.Load(key)
	change := Change{Position: at, Key: key, Time: time.Now(), Deleted: next == nil}
	if before != nil {
		change.WasClientSide = before.State().ClientSide
	}
	t.flagsChanged.Store(&at)
	if next == nil {
		t.flags.Delete(key)
		t.keysGeneration.Add(1)
		r.changes.add(t, change)
		return
	}
	after, err := newFlag(next, t.state.Load().Environments, before)
	if err != nil { // as in the service, the flag serves as far as it can
		r.faults.Add(1)
	}
	t.flags.Store(key, after)
	if before == nil {
		t.keysGeneration.Add(1)
	}
	if before != nil && sameTargeting(before.State(), next) {
		change.Environment = elsewhere
	}
	change.Version, change.Time, change.ClientSide = next.Version, next.UpdatedAt, next.ClientSide
	r.changes.add(t, change)
}

// sameTargeting reports whether two states evaluate equally but for their versions.
func sameTargeting(a, b *state.Flag) bool {
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
	list := []FeedEvent{{Type: FeedReset, Version: FeedVersion, Environment: &r.held.environment}, {Type: FeedState}}
	for _, key := range r.held.keys {
		list[1].Keys = append(list[1].Keys, key)
	}
	for _, flag := range r.held.flags {
		list[1].Flags = append(list[1].Flags, flag)
	}
	return append(list, FeedEvent{Type: FeedReady, Position: r.feedID(r.Position())})
}

// SigningSecrets returns the secrets of signed contexts with an id. Which ids are valid is in the keys.
func (r *Replica) SigningSecrets(id string) ([]string, bool) { return r.secrets.Load(id) }

// OwnTenant returns the tenant of the feed, and false before the first ready.
func (r *Replica) OwnTenant() (own *Tenant, ok bool) {
	for _, own = range r.tenants.All() {
		return own, true
	}
	return nil, false
}
