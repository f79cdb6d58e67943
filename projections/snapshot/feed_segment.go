package snapshot

import (
	"context"
	"encoding/json"

	"github.com/maypok86/otter/v2"

	"flagledger/events"
	"flagledger/events/state"
)

// SegmentUpdate is a segment in an event of a feed. Of its members it has only those that the reader lacks.
type SegmentUpdate struct {
	State *state.Segment `json:"state"` // without members
	// From is the version of which the lists add and remove members; 0 for a segment that the reader may not have.
	From   events.Revision                `json:"from,omitzero"`
	Add    map[events.MemberList][]string `json:"add,omitempty"`
	Remove map[events.MemberList][]string `json:"remove,omitempty"`
}

var memberLists = []events.MemberList{events.Included, events.Excluded}

// newSegmentUpdate returns the update from one state, nil for none, to another.
func newSegmentUpdate(before, after *state.Segment) *SegmentUpdate {
	u := &SegmentUpdate{State: withoutMembers(after)}
	if before == nil || !after.Exists {
		before = &state.Segment{}
	}
	u.From = before.Version
	for _, list := range memberLists {
		was, is := before.List(list), after.List(list)
		u.Add = addMembers(u.Add, list, is.Minus(*was))
		u.Remove = addMembers(u.Remove, list, was.Minus(*is))
	}
	return u
}

func addMembers(to map[events.MemberList][]string, list events.MemberList, members []string,
) map[events.MemberList][]string {
	if len(members) == 0 {
		return to
	}
	if to == nil {
		to = map[events.MemberList][]string{}
	}
	to[list] = members
	return to
}

// withoutMembers returns the part of a state that evaluates the segment, beside its members.
func withoutMembers(s *state.Segment) *state.Segment {
	part := *s
	part.Name, part.Description, part.Tags = "", "", nil
	part.Included, part.Excluded = state.Members{}, state.Members{}
	return &part
}

// Apply returns the state after the update. before is that of the reader, nil for none.
func (u *SegmentUpdate) Apply(before *state.Segment) *state.Segment {
	after := *u.State
	if before != nil && u.From > 0 {
		after.Included, after.Excluded = before.Included, before.Excluded
	}
	for _, list := range memberLists {
		members := after.List(list)
		*members = members.Without(u.Remove[list]).With(u.Add[list])
	}
	return &after
}

// segmentPieces splits a segment into events of at most about maxFeedChunk bytes: the first has the segment, each
// further one adds members.
func segmentPieces(s *state.Segment) (pieces []*SegmentUpdate) {
	piece, size := &SegmentUpdate{State: withoutMembers(s)}, 0
	for _, list := range memberLists {
		for member := range s.List(list).All() {
			if size += len(member) + len(`"",`); size > maxFeedChunk {
				pieces = append(pieces, piece)
				piece, size = &SegmentUpdate{State: piece.State, From: s.Version}, 0
			}
			piece.Add = addMembers(piece.Add, list, append(piece.Add[list], member))
		}
	}
	return append(pieces, piece)
}

// carries reports whether the reader may have a segment: without secrets it gets no private one.
func (f *Feed) carries(s *state.Segment) bool { return !s.Private || f.secrets != nil }

// segmentEvents caches the events of segments, which all readers are sent at the same time.
var segmentEvents = otter.Must(&otter.Options[segmentEventKey, []byte]{
	MaximumWeight: maxFeedCache,
	// The two states share all but the chunks of members that differ.
	Weigher: func(_ segmentEventKey, data []byte) uint32 { return uint32(len(data)) + 64<<10 },
})

type segmentEventKey struct{ before, after *state.Segment }

// segmentEvent returns the event of a segment that has changed: as it is now, or that it is gone.
func (f *Feed) segmentEvent(key string) ([]byte, error) {
	segment, ok := f.tenant.Segments().Last(key)
	if !ok || !f.carries(segment.State()) {
		delete(f.segments, key)
		return json.Marshal(FeedEvent{Type: FeedGone, SegmentKey: key})
	}
	change := segmentEventKey{f.segments[key], segment.State()}
	f.segments[key] = segment.State()
	return segmentEvents.Get(context.Background(), change,
		otter.LoaderFunc[segmentEventKey, []byte](func(context.Context, segmentEventKey) ([]byte, error) {
			return json.Marshal(FeedEvent{Type: FeedSegment, Segment: newSegmentUpdate(change.before, change.after)})
		}))
}

// showSegmentOf shows a segment of the feed, or removes it for nil.
func (r *Replica) showSegmentOf(key string, next *state.Segment) {
	if next == nil {
		d := r.tenant.Dependencies()
		r.tenant.dependencies.Store(d.WithSegments(d.Segments().Without(key)))
		next = &state.Segment{}
	} else if err := r.tenant.showSegment(next); err != nil { // as in the service, it goes on with older rules
		r.faults.Add(1)
	}
	r.tenant.flagsChanged.Store(new(r.Position()))
	r.changes.add(r.tenant, Change{Time: next.UpdatedAt, Dependents: r.tenant.segmentChange(key)})
}
