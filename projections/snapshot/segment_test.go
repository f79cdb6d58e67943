package snapshot

import (
	"path/filepath"
	"strings"
	"testing"

	"flagledger/events"
)

// A deleted segment keeps its key, version and time while rules refer to it, because answers depend on these.
func TestDeletedSegmentsStayWhileRulesReferToThem(t *testing.T) {
	s := newScribe()
	tenant, _ := s.Tenant("t")
	wants := func(what, list string) {
		t.Helper()
		var keys []string
		for _, segment := range tenant.Segments().All() {
			key := segment.State().Key
			if !segment.State().Exists {
				key += "!"
			}
			keys = append(keys, key)
		}
		if got := strings.Join(keys, " "); got != list {
			t.Errorf("%s: the segments are %q, want %q", what, got, list)
		}
	}
	segment := func(key string, facts ...events.Fact) { s.page(events.SegmentStream("t", key), facts...) }
	deleted := func(key string) {
		segment(key, events.SegmentCreated{TenantID: "t", Key: key, ID: key},
			events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}},
			events.ChangeSegmentRules(nil, []events.Rule{asksFor(key)}))
		segment(key, events.SegmentDeleted{})
	}
	deleted("unused")
	wants("nobody asks, not counting itself", "")

	s.flag("t", "a", three, on, ruled(asksFor("gone")))
	deleted("gone")
	wants("a flag asks", "gone!")
	last, _ := tenant.Segments().Last("gone")
	if state := last.State(); state.Included.Len()+len(state.Rules)+len(state.Uses) > 0 || state.Version == 0 {
		t.Errorf("what stays is %+v", state)
	}
	if d := difference(reloaded(t, s.Snapshot, filepath.Join(t.TempDir(), "copy")), s.Snapshot); d != "" {
		t.Error(d)
	}
	s.flag("t", "b", three, ruled(asksFor("gone")))
	s.flag("t", "a", events.ChangeRules(production, []events.Rule{asksFor("gone")}, nil))
	wants("another flag asks", "gone!")
	s.flag("t", "b", events.FlagDeleted{})
	wants("no flag asks", "")

	segment("outer", events.SegmentCreated{TenantID: "t", Key: "outer", ID: "outer"},
		events.ChangeSegmentRules(nil, []events.Rule{asksFor("gone")}))
	deleted("gone")
	wants("a segment asks", "gone! outer")
	segment("outer", events.ChangeSegmentRules([]events.Rule{asksFor("gone")}, nil))
	wants("the segment asks no longer", "outer")
	segment("outer", events.ChangeSegmentRules(nil, []events.Rule{asksFor("gone")}))
	deleted("gone")
	segment("outer", events.SegmentDeleted{})
	wants("the segment is gone", "")

	s.flag("t", "a", three, ruled(asksFor("gone")))
	deleted("gone")
	wants("a flag asks again", "gone!")
	s.page(events.TenantStream("t"), events.EnvironmentDeleted{Environment: production})
	wants("its environment is gone", "")
}
