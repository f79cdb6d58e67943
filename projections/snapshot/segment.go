package snapshot

import (
	"slices"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
)

// Segments returns the tenant's segments at this moment.
func (t *Tenant) Segments() *evaluation.Segments { return t.Dependencies().Segments() }

// SegmentCount counts the tenant's segments.
func (t *Tenant) SegmentCount() (n int) {
	for _, s := range t.Segments().All() {
		if s.State().Exists {
			n++
		}
	}
	return n
}

// segmentDependents returns the keys of the flags that refer to a segment in an environment.
func (t *Tenant) segmentDependents(key string) []string {
	var list []dependency
	for _, e := range t.Environments() {
		list = append(list, dependency{environmentID: e.ID, segmentKey: key})
	}
	return t.dependents.of(list...)
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
	for _, flagKey := range t.segmentDependents(key) {
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
func (t *Tenant) SegmentUserCount(key string) int { return t.segmentUserCounts(t.Segments(), key)[key] }

// SegmentUserCounts counts the flags and segments whose rules refer to each segment, by key.
func (t *Tenant) SegmentUserCounts() map[string]int {
	return t.segmentUserCounts(t.Segments(), t.dependents.segments()...)
}

// segmentUserCounts counts the flags that refer to some segments, and the segments that refer to any.
func (t *Tenant) segmentUserCounts(segments *evaluation.Segments, keys ...string) map[string]int {
	counts := map[string]int{}
	for _, key := range keys {
		counts[key] = len(t.segmentDependents(key))
	}
	for _, s := range segments.All() {
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
	next.LastChange, next.Salted, next.Forgotten = state.MemberChange{}, false, 0
	if next.SaltID != saltID || !next.Exists {
		s.salts.known.Delete(saltID)
	}
	if next.Exists && next.Private && next.Salt == nil {
		next.Salt, next.SaltMissing = s.salts.ofSegment(next.SaltID)
	}
	if err := t.showSegment(&next); err != nil {
		fault(last, err)
	}
	t.flagsChanged.Store(&last.Position)
	if next.Exists != existed || !slices.Equal(next.Uses, uses) {
		s.broken.mark(t)
	}
	s.changes.add(t, Change{Position: last.Position, Time: last.At, Dependents: t.segmentChange(key)})
}

// showSegment shows a state of a segment, which nothing changes from then on. The error is that of
// evaluation.CompileSegment: the segment can be used all the same.
func (t *Tenant) showSegment(next *state.Segment) error {
	before, _ := t.Segments().Last(next.Key)
	if !next.Exists {
		next = deletedSegment(next)
	}
	compiled, err := evaluation.CompileSegment(next, before)
	t.flagBytes.Add(int64(next.Bytes()))
	unused := []string{next.Key}
	if before != nil {
		t.flagBytes.Add(-int64(before.State().Bytes()))
		for _, use := range before.State().Uses {
			unused = append(unused, use.Key)
		}
	}
	segments := t.withoutUnused(t.Segments().With(compiled), unused...)
	t.dependencies.Store(t.Dependencies().WithSegments(segments))
	return err
}

// deletedSegment returns what stays of a segment while rules refer to it, of the state after its deletion: answers
// depend on when it was deleted.
func deletedSegment(s *state.Segment) *state.Segment {
	last := &state.Segment{CreatedVersion: s.CreatedVersion, Version: s.Version, UpdatedAt: s.UpdatedAt}
	last.TenantID, last.Key = s.TenantID, s.Key
	return last
}

// withoutUnused returns segments without those with some keys that are deleted and that no rule refers to.
func (t *Tenant) withoutUnused(segments *evaluation.Segments, keys ...string) *evaluation.Segments {
	for _, key := range keys {
		s, ok := segments.Last(key)
		if ok && !s.State().Exists && t.segmentUserCounts(segments, key)[key] == 0 {
			segments = segments.Without(key)
		}
	}
	return segments
}

// dropUnused drops segments with some keys that are deleted and that no rule refers to.
func (t *Tenant) dropUnused(keys ...string) {
	if segments := t.withoutUnused(t.Segments(), keys...); segments != t.Segments() {
		t.dependencies.Store(t.Dependencies().WithSegments(segments))
	}
}
