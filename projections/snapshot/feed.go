package snapshot

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"flagledger/events"
	"flagledger/events/state"
)

// FeedVersion is the version of the feed's events. A reader ignores members that it does not know, and refuses a later
// version: answers would be wrong without its new members. Version 2 has prerequisites.
const FeedVersion = 2

// FeedType says what an event of a feed tells.
type FeedType string

// The types of a feed's events.
const (
	FeedReset   FeedType = "reset"   // what the reader holds is void: the full state follows, and then ready
	FeedState   FeedType = "state"   // a chunk of the full state; without a reset before, the environment and all its keys
	FeedReady   FeedType = "ready"   // what came since the last ready is complete: the reader holds all up to the position
	FeedFlag    FeedType = "flag"    // a flag as it is now
	FeedKey     FeedType = "key"     // an evaluation key as it is now
	FeedSegment FeedType = "segment" // a segment as it is now
	FeedGone    FeedType = "gone"    // a flag, a key or a segment that no longer exists
)

// FeedEvent is an event of a feed. A feed carries everything needed to evaluate the flags of one environment.
type FeedEvent struct {
	Type        FeedType         `json:"type"`
	Position    string           `json:"position,omitempty"` // of a ready
	Version     int              `json:"version,omitempty"`  // FeedVersion, of a reset
	Environment *FeedEnvironment `json:"environment,omitempty"`
	Flag        *state.Flag      `json:"flag,omitempty"`
	Flags       []*state.Flag    `json:"flags,omitempty"`
	Key         *EvaluationKey   `json:"key,omitempty"`
	Keys        []*EvaluationKey `json:"keys,omitempty"`
	FlagKey     string           `json:"flagKey,omitempty"` // of a flag that is gone
	Deleted     *state.Flag      `json:"deleted,omitempty"` // what answers need of a flag that is gone, if others require it
	KeyID       string           `json:"keyId,omitempty"`   // of an evaluation key that is gone
	Segment     *SegmentUpdate   `json:"segment,omitempty"`
	SegmentKey  string           `json:"segmentKey,omitempty"` // of a segment that is gone
}

// FeedEnvironment is the environment of a feed.
type FeedEnvironment struct {
	TenantID    string                `json:"tenantId"`
	Environment events.EnvironmentRef `json:"environment"`
	AddedAt     time.Time             `json:"addedAt,omitzero"` // when it was added, as recorded
	Plan        events.Plan           `json:"plan"`             // limits what browsers may ask
}

const (
	// maxFeedChunk is about the size of a chunk of the full state, in bytes.
	maxFeedChunk = 64 << 10
	// maxFeedUpdate is the size from which a reader is sent the full state in place of what has changed, in bytes.
	maxFeedUpdate = 4 << 20
	// maxFeedCache limits the memory of cached events of flags, and that of cached chunks, in bytes.
	maxFeedCache = 16 << 20
)

// Feed follows one environment for a reader. Its methods are for one goroutine. Close it.
type Feed struct {
	snapshot    *Snapshot
	tenant      *Tenant
	environment state.Environment
	listener    *Listener
	secrets     func(signingID string) ([]string, error)
	sent        FeedEnvironment
	keys        map[string]state.EvaluationKey // as sent
	segments    map[string]*state.Segment      // as sent
	seen        *tenantState                   // when the environment and the keys were compared
}

// Feed returns a feed of an environment. secrets returns the secrets of signed contexts; if it is nil, the reader gets
// none and can serve no signed keys.
func (s *Snapshot) Feed(t *Tenant, environment state.Environment, secrets func(string) ([]string, error)) *Feed {
	f := &Feed{
		snapshot: s, tenant: t, environment: environment, listener: s.Listen(t, "", math.MaxInt), secrets: secrets,
		segments: map[string]*state.Segment{},
	}
	f.listener.feed = true
	return f
}

// Close ends the feed.
func (f *Feed) Close() { f.listener.Close() }

// Resume continues after the event with this id. It returns false if the id is not of this log; if it is too old, Next
// sets Reset. The reader may come from another node and be ahead of this one: Resume waits for the missing changes
// until ctx ends.
func (f *Feed) Resume(ctx context.Context, id string) bool {
	position, ok := f.snapshot.parseFeedID(id)
	if !ok {
		return false
	}
	if f.snapshot.Position().Compare(position) < 0 {
		f.snapshot.Await(ctx, f.tenant, position)
	}
	f.listener.Resume(position)
	return true
}

// FullState yields the full state in updates of one event each, from a reset to a ready, which alone has an ID.
func (f *Feed) FullState() iter.Seq2[FeedUpdate, error] {
	return func(yield func(FeedUpdate, error) bool) {
		id := f.snapshot.feedID(f.listener.Next().Position)
		f.sent, f.keys = f.information(), f.keysNow()
		send := func(data []byte, err error) bool {
			return yield(FeedUpdate{Events: [][]byte{data}}, err) && err == nil
		}
		keys, err := f.allKeys()
		if err != nil {
			yield(FeedUpdate{}, err)
			return
		}
		if !send(json.Marshal(FeedEvent{Type: FeedReset, Version: FeedVersion, Environment: &f.sent})) ||
			!send(json.Marshal(FeedEvent{Type: FeedState, Keys: keys})) {
			return
		}
		var chunk []*Flag
		size := 0
		for _, key := range f.tenant.FlagKeys() {
			flag, ok := f.tenant.Flag(key)
			if !ok {
				continue
			}
			if size += int(flag.bytes); size > maxFeedChunk && len(chunk) > 0 {
				if !send(f.chunkEvent(chunk)) {
					return
				}
				chunk, size = nil, int(flag.bytes)
			}
			chunk = append(chunk, flag)
		}
		if len(chunk) > 0 && !send(f.chunkEvent(chunk)) || !f.allSegments(send) {
			return
		}
		for _, required := range f.tenant.Dependencies().Required() {
			if last := required.State(); !last.Exists &&
				!send(json.Marshal(FeedEvent{Type: FeedState, FlagKey: last.Key, Deleted: last})) {
				return
			}
		}
		ready, err := json.Marshal(FeedEvent{Type: FeedReady, Position: id})
		yield(FeedUpdate{Events: [][]byte{ready}, ID: id}, err)
	}
}

// feedChunks caches the chunks of full states, which readers that start at the same time share.
var feedChunks = otter.Must(&otter.Options[feedEventKey, *feedChunk]{
	MaximumWeight: maxFeedCache,
	Weigher:       func(_ feedEventKey, c *feedChunk) uint32 { return uint32(len(c.data)) + 8*uint32(len(c.flags)) + 100 },
})

// feedChunk is the event of exactly these flags.
type feedChunk struct {
	flags []*Flag
	data  []byte
}

// chunkEvent returns the event of some flags of the full state. The cache finds it by the first of them.
func (f *Feed) chunkEvent(flags []*Flag) ([]byte, error) {
	key := feedEventKey{flags[0], f.environment.ID}
	if c, ok := feedChunks.GetIfPresent(key); ok && slices.Equal(c.flags, flags) {
		return c.data, nil
	}
	e := FeedEvent{Type: FeedState}
	for _, flag := range flags {
		e.Flags = append(e.Flags, inEnvironment(flag.State(), f.environment.ID))
	}
	data, err := json.Marshal(e)
	if err == nil {
		feedChunks.Set(key, &feedChunk{flags, data})
	}
	return data, err
}

// allSegments sends all segments in pieces.
func (f *Feed) allSegments(send func([]byte, error) bool) bool {
	clear(f.segments)
	for _, segment := range f.tenant.Segments().All() {
		if !f.carries(segment.State()) {
			continue
		}
		f.segments[segment.State().Key] = segment.State()
		for _, piece := range segmentPieces(segment.State()) {
			if !send(json.Marshal(FeedEvent{Type: FeedState, Segment: piece})) {
				return false
			}
		}
	}
	return true
}

// FeedUpdate holds the events since a feed's last update.
type FeedUpdate struct {
	Events [][]byte        // as JSON, in order, and a ready at their end; other readers share them
	ID     string          // of what the reader holds after them
	Reset  bool            // events may be missing: the full state must be sent
	More   <-chan struct{} // closed at the next change
	Turn   time.Duration   // how long to wait after More, see Update
}

// Next returns what has changed since the last call. Of a flag that has changed several times it has the newest state.
func (f *Feed) Next() (FeedUpdate, error) {
	update := f.listener.Next()
	u := FeedUpdate{
		ID: f.snapshot.feedID(update.Position), More: update.More, Turn: update.Turn, Reset: update.Gap,
	}
	if u.Reset {
		return u, nil
	}
	add := func(e FeedEvent) error {
		data, err := json.Marshal(e)
		u.Events = append(u.Events, data)
		return err
	}
	if err := f.addTenant(add); err != nil {
		return u, err
	}
	last, size := map[subject]int{}, 0
	for i, c := range update.Changes {
		last[c.subject()] = i
	}
	for i, c := range update.Changes {
		of := c.subject()
		if last[of] != i || of == (subject{}) {
			continue
		}
		data, err := f.changeEvent(of)
		if err != nil {
			return u, err
		}
		u.Events = append(u.Events, data)
		if size += len(data); size > maxFeedUpdate {
			u.Events, u.Reset = nil, true
			return u, nil
		}
	}
	if len(u.Events) == 0 {
		return u, nil
	}
	return u, add(FeedEvent{Type: FeedReady, Position: u.ID})
}

// addTenant adds the events of the tenant's own changes: of the environment and its keys.
func (f *Feed) addTenant(add func(FeedEvent) error) error {
	now := f.tenant.state.Load()
	if now == f.seen { // as at most wakes
		return nil
	}
	f.seen = now
	information := f.information()
	if information == f.sent {
		return f.addKeys(add)
	}
	// Also after Resume: it is unknown which keys the reader holds.
	f.sent, f.keys = information, f.keysNow()
	keys, err := f.allKeys()
	if err != nil {
		return err
	}
	return add(FeedEvent{Type: FeedState, Environment: &information, Keys: keys})
}

// addKeys adds the events of evaluation keys that differ from those that were sent.
func (f *Feed) addKeys(add func(FeedEvent) error) error {
	before, now := f.keys, f.keysNow()
	f.keys = now
	for _, keyID := range slices.Sorted(maps.Keys(before)) {
		if _, ok := now[keyID]; !ok {
			if err := add(FeedEvent{Type: FeedGone, KeyID: keyID}); err != nil {
				return err
			}
		}
	}
	for _, keyID := range slices.Sorted(maps.Keys(now)) {
		if was, ok := before[keyID]; ok && reflect.DeepEqual(was, now[keyID]) {
			continue
		}
		key, err := f.key(keyID)
		if err != nil {
			return err
		}
		if err := add(FeedEvent{Type: FeedKey, Key: key}); err != nil {
			return err
		}
	}
	return nil
}

// feedEvents caches the events of flags, which all readers of an environment are sent at the same time.
var feedEvents = otter.Must(&otter.Options[feedEventKey, []byte]{
	MaximumWeight: maxFeedCache,
	Weigher:       func(_ feedEventKey, data []byte) uint32 { return uint32(len(data)) + 100 },
})

type feedEventKey struct {
	flag          *Flag
	environmentID string
}

// flagEvent returns the event of a flag that has changed: as it is now, or that it is gone.
func (f *Feed) flagEvent(key string) ([]byte, error) {
	flag, ok := f.tenant.Flag(key)
	if !ok {
		gone := FeedEvent{Type: FeedGone, FlagKey: key}
		if required := f.tenant.Dependencies().Find(key); required != nil && !required.State().Exists {
			gone.Deleted = required.State()
		}
		return json.Marshal(gone)
	}
	return feedEvents.Get(context.Background(), feedEventKey{flag, f.environment.ID},
		otter.LoaderFunc[feedEventKey, []byte](func(context.Context, feedEventKey) ([]byte, error) {
			return json.Marshal(FeedEvent{Type: FeedFlag, Flag: inEnvironment(flag.State(), f.environment.ID)})
		}))
}

// subject is what a feed tells of: a flag or a segment. That of a change of dependents alone is empty.
type subject struct{ flagKey, segmentKey string }

func (c *Change) subject() subject {
	if c.Dependents != nil {
		return subject{segmentKey: c.Dependents.SegmentKey}
	}
	return subject{flagKey: c.Key}
}

// changeEvent returns the event of a flag or a segment that has changed.
func (f *Feed) changeEvent(of subject) ([]byte, error) {
	if of.segmentKey != "" {
		return f.segmentEvent(of.segmentKey)
	}
	return f.flagEvent(of.flagKey)
}

// inEnvironment returns the part of a state that evaluates the flag in an environment.
func inEnvironment(s *state.Flag, environmentID string) *state.Flag {
	part := *s
	part.Name, part.Description, part.Owner, part.Links, part.Permanent = "", "", "", nil, false
	part.Enabled, part.Rules, part.Fallthrough, part.Prerequisites, part.RequiredChanged = nil, nil, nil, nil, nil
	part.Variations = slices.Clone(s.Variations)
	for i := range part.Variations {
		part.Variations[i].Description = ""
	}
	if s.Enabled.Has(environmentID) {
		part.Enabled = state.EnvironmentSet{environmentID}
	}
	part.SetRules(environmentID, s.Rules[environmentID])
	part.SetFallthrough(environmentID, s.FallthroughIn(environmentID))
	if list := s.Prerequisites[environmentID]; len(list) > 0 {
		part.Prerequisites = map[string][]state.Prerequisite{environmentID: list}
	}
	if at, ok := s.RequiredChanged[environmentID]; ok {
		part.RequiredChanged = map[string]time.Time{environmentID: at}
	}
	return &part
}

func (f *Feed) information() FeedEnvironment {
	return FeedEnvironment{f.tenant.id, f.environment.EnvironmentRef, f.environment.AddedAt, f.tenant.Plan(time.Now())}
}

// keysNow returns the evaluation keys of the environment.
func (f *Feed) keysNow() map[string]state.EvaluationKey {
	keys := map[string]state.EvaluationKey{}
	for id, key := range f.tenant.state.Load().EvaluationKeys {
		if key.Environment.ID == f.environment.ID {
			keys[id] = key
		}
	}
	return keys
}

// key returns a key as the reader may have it: secrets only if the feed has them.
func (f *Feed) key(id string) (*EvaluationKey, error) {
	key := &EvaluationKey{EvaluationKey: f.keys[id], TenantID: f.tenant.id}
	key.CreatedBy = ""
	if f.secrets == nil || !key.Signed() {
		return key, nil
	}
	key.SigningSecrets = map[string][]string{}
	for _, signing := range key.SigningIDs(time.Now()) {
		secrets, err := f.secrets(signing)
		if err != nil {
			return nil, err
		}
		key.SigningSecrets[signing] = secrets
	}
	return key, nil
}

// allKeys returns the keys of the environment in the order of their ids.
func (f *Feed) allKeys() (list []*EvaluationKey, err error) {
	for _, id := range slices.Sorted(maps.Keys(f.keys)) {
		key, err := f.key(id)
		if err != nil {
			return nil, err
		}
		list = append(list, key)
	}
	return list, nil
}

// feedID returns the id of a position: <log id>.<commit>.<prepare>.
func (s *Snapshot) feedID(p events.Position) string {
	return fmt.Sprintf("%s.%d.%d", s.logText(), p.Commit, p.Prepare)
}

// logText returns the id of the log without characters that separate the parts of an id.
func (s *Snapshot) logText() string { return base64.RawURLEncoding.EncodeToString([]byte(s.LogName())) }

// parseFeedID reads an id of this log.
func (s *Snapshot) parseFeedID(id string) (p events.Position, ok bool) {
	log, position, ok := ParseFeedID(id)
	return position, ok && base64.RawURLEncoding.EncodeToString([]byte(log)) == s.logText()
}

// ParseFeedID splits the id of an event into the log's name and the position.
func ParseFeedID(id string) (logName string, p events.Position, ok bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 3 {
		return "", p, false
	}
	name, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return "", p, false
	}
	if p.Commit, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return "", p, false
	}
	p.Prepare, err = strconv.ParseUint(parts[2], 10, 64)
	return string(name), p, err == nil
}
