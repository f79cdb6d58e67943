package snapshot

import (
	"maps"
	"slices"
	"sync"
	"time"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
)

// Segments returns the tenant's segments at this moment.
func (t *Tenant) Segments() *evaluation.Segments { return t.segments.Load() }

// SegmentCount counts the tenant's segments.
func (t *Tenant) SegmentCount() (n int) {
	for _, s := range t.Segments().All() {
		if s.State().Exists {
			n++
		}
	}
	return n
}

// FlagWithSegments finds a flag by its key, and the tenant's segments at the same moment: those of another moment might
// give an answer that no moment gives.
func (t *Tenant) FlagWithSegments(key string) (f *Flag, segments *evaluation.Segments, ok bool) {
	for {
		segments = t.segments.Load()
		f, ok = t.flags.Load(key)
		if t.segments.Load() == segments {
			return f, segments, ok
		}
	}
}

// segmentUsers has the flags whose rules refer to each segment.
type segmentUsers struct {
	mu    sync.RWMutex
	flags map[string]map[string]bool // keys of flags by the key of a segment
}

// replace notes that a flag refers to some segments in place of others.
func (u *segmentUsers) replace(flagKey string, before, after []string) {
	if len(before) == 0 && len(after) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range before {
		if delete(u.flags[key], flagKey); len(u.flags[key]) == 0 {
			delete(u.flags, key)
		}
	}
	for _, key := range after {
		if u.flags == nil {
			u.flags = map[string]map[string]bool{}
		}
		if u.flags[key] == nil {
			u.flags[key] = map[string]bool{}
		}
		u.flags[key][flagKey] = true
	}
}

// of returns the sorted keys of the flags that refer to one of some segments.
func (u *segmentUsers) of(keys ...string) []string {
	u.mu.RLock()
	defer u.mu.RUnlock()
	flags := map[string]bool{}
	for _, key := range keys {
		maps.Copy(flags, u.flags[key])
	}
	return slices.Sorted(maps.Keys(flags))
}

// SegmentUser is a rule that refers to a segment: of a flag in an environment, or of a segment.
type SegmentUser struct {
	FlagKey     string // empty for a segment
	Environment events.EnvironmentRef
	SegmentKey  string
	RuleID      string
}

// SegmentUsers returns the rules that refer to a segment: those of flags first, by their keys.
func (t *Tenant) SegmentUsers(key string) (users []SegmentUser) {
	for _, flagKey := range t.users.of(key) {
		f, ok := t.Flag(flagKey)
		if !ok {
			continue
		}
		for _, e := range t.Environments() {
			for _, id := range rulesWith(f.State().Rules[e.ID], key) {
				users = append(users, SegmentUser{FlagKey: flagKey, Environment: e, RuleID: id})
			}
		}
	}
	for _, s := range t.Segments().All() {
		if s.State().Exists {
			for _, id := range rulesWith(s.State().Rules, key) {
				users = append(users, SegmentUser{SegmentKey: s.State().Key, RuleID: id})
			}
		}
	}
	return users
}

// SegmentUserCount counts the flags and segments whose rules refer to a segment.
func (t *Tenant) SegmentUserCount(key string) int { return t.segmentUserCounts(key)[key] }

// SegmentUserCounts counts the flags and segments whose rules refer to each segment, by key.
func (t *Tenant) SegmentUserCounts() map[string]int {
	return t.segmentUserCounts(t.users.segments()...)
}

// segmentUserCounts counts the flags that refer to some segments, and the segments that refer to any.
func (t *Tenant) segmentUserCounts(keys ...string) map[string]int {
	counts := map[string]int{}
	for _, key := range keys {
		for _, flagKey := range t.users.of(key) {
			f, ok := t.Flag(flagKey)
			uses := func(e events.EnvironmentRef) bool { return slices.Contains(f.Segments(e.ID), key) }
			if ok && slices.ContainsFunc(t.Environments(), uses) {
				counts[key]++
			}
		}
	}
	for _, s := range t.Segments().All() {
		if s.State().Exists {
			for _, use := range s.State().Uses {
				counts[use.Key]++
			}
		}
	}
	return counts
}

func rulesWith(list []events.Rule, segment string) (ids []string) {
	for i := range list {
		if slices.Contains(state.SegmentsOf(list[i:i+1]), segment) {
			ids = append(ids, list[i].ID)
		}
	}
	return ids
}

// applySegment applies all events before it shows any, as applyFlag does.
func (s *Snapshot) applySegment(run []events.Recorded, fault func(events.Recorded, error)) {
	tenantID, key := events.ParseSegmentStream(run[0].Stream)
	t, ok := s.tenants.Load(tenantID)
	if !ok { // deleted meanwhile
		return
	}
	next := state.Segment{SegmentCreated: events.SegmentCreated{Key: key}}
	if before, ok := t.Segments().Last(key); ok {
		next = before.State().Clone()
	}
	existed, uses, saltID := next.Exists, next.Uses, next.SaltID
	var last events.Recorded
	for e := range facts[events.SegmentFact](run, fault) {
		next.Apply(e)
		last = e
	}
	if last.Fact == nil {
		return
	}
	next.LastChange = state.MemberChange{}
	if next.SaltID != saltID {
		s.salts.known.Delete(saltID)
	}
	if next.Private && next.Salt == nil {
		next.Salt = s.salts.ofSegment(next.SaltID)
	}
	if err := t.showSegment(&next); err != nil {
		fault(last, err)
	}
	t.flagsChanged.Store(&last.Position)
	if next.Exists != existed || !slices.Equal(next.Uses, uses) {
		s.broken.mark(t)
	}
	s.changes.add(t, Change{
		Position: last.Position, Time: last.At, Version: next.Version, Deleted: !next.Exists,
		Segment: t.segmentChange(key),
	})
}

// showSegment shows a state of a segment, which nothing changes from then on. A deleted one stays while rules refer to
// it, because answers depend on when it was deleted. The error is that of evaluation.CompileSegment: the segment can be
// used all the same.
func (t *Tenant) showSegment(next *state.Segment) error {
	segments := t.Segments()
	before, _ := segments.Last(next.Key)
	compiled, err := evaluation.CompileSegment(next, before)
	if before != nil {
		t.flagBytes.Add(-int64(before.State().Bytes()))
	}
	t.flagBytes.Add(int64(next.Bytes()))
	if next.Exists || t.SegmentUserCount(next.Key) > 0 {
		t.segments.Store(segments.With(compiled))
	} else {
		t.segments.Store(segments.Without(next.Key))
	}
	return err
}

// maxChangedFlags limits the flags that a change of a segment names.
const maxChangedFlags = 500

// SegmentChange is a change of a segment, and which flags it may change.
type SegmentChange struct {
	Key   string
	Flags []FlagOfSegment // that refer to the segment, also through other segments
	Many  bool            // there are too many flags to name
}

// FlagOfSegment is a flag that refers to a segment in an environment.
type FlagOfSegment struct {
	Key           string
	EnvironmentID string
	Version       events.Revision
	ClientSide    bool
}

// segmentChange finds the flags that a change of a segment concerns.
func (t *Tenant) segmentChange(key string) *SegmentChange {
	change := &SegmentChange{Key: key}
	through := t.Segments().LeadingTo(key)
	for _, flagKey := range t.users.of(through...) {
		f, ok := t.Flag(flagKey)
		if !ok {
			continue
		}
		for _, e := range t.Environments() {
			if !slices.ContainsFunc(f.Segments(e.ID), func(used string) bool { return slices.Contains(through, used) }) {
				continue
			}
			if len(change.Flags) == maxChangedFlags {
				return &SegmentChange{Key: key, Many: true}
			}
			change.Flags = append(change.Flags, FlagOfSegment{flagKey, e.ID, f.Version(), f.State().ClientSide})
		}
	}
	return change
}

// In returns the part of the change for one environment, or all of it for an empty id; nil if it changes no flag there.
func (c *SegmentChange) In(environmentID string) *SegmentChange {
	return c.where(func(f FlagOfSegment) bool { return environmentID == "" || f.EnvironmentID == environmentID })
}

// ClientSide returns the part of the change that browsers see, nil if there is none.
func (c *SegmentChange) ClientSide() *SegmentChange {
	return c.where(func(f FlagOfSegment) bool { return f.ClientSide })
}

// where returns the part of the change for some flags, nil if there are none.
func (c *SegmentChange) where(is func(FlagOfSegment) bool) *SegmentChange {
	part := &SegmentChange{Key: c.Key, Many: c.Many}
	for _, f := range c.Flags {
		if is(f) {
			part.Flags = append(part.Flags, f)
		}
	}
	if len(part.Flags) == 0 && !part.Many {
		return nil
	}
	return part
}

// clear forgets all flags.
func (u *segmentUsers) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.flags = nil
}

// segments returns the keys of the segments that flags refer to.
func (u *segmentUsers) segments() []string {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return slices.Collect(maps.Keys(u.flags))
}

// SegmentsChanged returns when a segment that a flag's rules lead to last changed, as recorded; zero without one.
func (t *Tenant) SegmentsChanged(flagKey string) (newest time.Time) {
	f, segments, ok := t.FlagWithSegments(flagKey)
	if !ok {
		return newest
	}
	for _, key := range segments.Reach(f.AllSegments()) {
		if segment, ok := segments.Last(key); ok && segment.State().UpdatedAt.After(newest) {
			newest = segment.State().UpdatedAt
		}
	}
	return newest
}
