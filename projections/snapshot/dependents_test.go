package snapshot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

func needs(keys ...string) events.PrerequisitesChanged {
	change := events.PrerequisitesChanged{Environment: production}
	for _, key := range keys {
		change.To = append(change.To, events.Prerequisite{FlagKey: key, Serves: []events.ServedValue{{Value: evaluation.True}}})
	}
	return change
}

var boolean = made(events.BooleanFlag, "false")

// required lists the flags that others require in a snapshot, with ! for a deleted one.
func required(s *Snapshot) string {
	t, _ := s.Tenant("t")
	var keys []string
	for _, f := range t.Dependencies().Required() {
		key := f.State().Key
		if !f.State().Exists {
			key += "!"
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, " ")
}

func TestRequiredFlagsStayWhileOthersRequireThem(t *testing.T) {
	s := newScribe()
	wants := func(what, list string) {
		t.Helper()
		if got := required(s.Snapshot); got != list {
			t.Errorf("%s: %q are required, want %q", what, got, list)
		}
	}
	s.flag("t", "base", boolean, on)
	s.flag("t", "middle", boolean, on, needs("base"))
	wants("one requires another", "base")
	s.flag("t", "top", boolean, on, needs("middle", "never"))
	wants("a chain", "base middle")
	s.flag("t", "base", events.FlagDeleted{})
	wants("a deleted one", "base! middle")
	s.flag("t", "middle", needs())
	wants("nobody requires it", "middle")
	s.flag("t", "never", boolean, on)
	wants("a new one", "middle never")
	s.flag("t", "top", events.FlagDeleted{})
	wants("the end", "")
	s.flag("t", "self", boolean, on, needs("self"))
	wants("itself", "self")
	s.flag("t", "self", events.FlagDeleted{})
	wants("not itself", "")
	s.flag("t", "top", boolean, on, needs("middle"))
	s.page(events.TenantStream("t"), events.EnvironmentDeleted{Environment: production})
	wants("without the environment", "")
}

func TestChangeNamesDependents(t *testing.T) {
	s := newScribe()
	s.flag("t", "base", boolean, on)
	s.flag("t", "middle", boolean, on, needs("base"))
	s.flag("t", "top", boolean, on, needs("middle"))
	tenant, _ := s.Tenant("t")
	l, elsewhere := s.listen("t", production.ID), s.listen("t", "another")
	s.flag("t", "base", events.FlagDisabled{Environment: production})
	var named []string
	for _, c := range l.Next().Changes {
		if c.Dependents == nil {
			named = append(named, c.Key)
			continue
		}
		for _, f := range c.Dependents.Flags {
			named = append(named, fmt.Sprint("dependent ", f.Key))
		}
	}
	expect(t, "in its environment", strings.Join(named, ","), "base,dependent middle,dependent top")
	expect(t, "in another", heard(elsewhere), "")
	var list []string
	for _, d := range tenant.Dependents("base") {
		list = append(list, d.FlagKey+" "+d.Environment.Name)
	}
	expect(t, "dependents", strings.Join(list, ","), "middle production")
	s.flag("t", "other", boolean, on)
	l.Next()
	s.flag("t", "other", events.FlagDisabled{Environment: production})
	expect(t, "of a flag that nobody requires", heard(l), "other")
	if got := tenant.UnusablePrerequisites("base", production.ID, []string{"top"}); len(got) != 1 {
		t.Errorf("a cycle is usable: %v", got)
	}
}

// The compiled flag still has the rules of a deleted environment, until the flag changes.
func TestDependenciesOfDeletedEnvironmentsDoNotChangeFlag(t *testing.T) {
	s := newScribe()
	s.flag("t", "a", three, on, ruled(asksFor("beta")))
	e := recorded(events.SegmentStream("t", "beta"), 1, events.SegmentCreated{TenantID: "t", Key: "beta", ID: "beta"})
	e.At = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.applyAll([]events.Recorded{e})
	tenant, _ := s.Tenant("t")
	if at := tenant.DependenciesChanged("a"); !at.Equal(e.At) {
		t.Errorf("the segment changed at %v", at)
	}
	s.page(events.TenantStream("t"), events.EnvironmentDeleted{Environment: production})
	if at := tenant.DependenciesChanged("a"); !at.IsZero() {
		t.Errorf("without the environment, dependencies changed at %v", at)
	}
}

// The names of dependents that all changes have together are limited: older changes have none.
func TestOldChangesNameNoDependents(t *testing.T) {
	s := newScribe()
	segment := events.SegmentStream("t", "beta")
	s.page(segment, events.SegmentCreated{TenantID: "t", Key: "beta", ID: "beta"})
	for i := range MaxNamedFlags {
		s.flag("t", fmt.Sprintf("f%03d", i), three, on, ruled(asksFor("beta")))
	}
	l := s.listen("t", production.ID)
	const kept = maxNamedDependents / MaxNamedFlags
	changeOften := func(n int) (changes []Change) {
		for range n {
			s.page(segment, events.SegmentMembersAdded{List: events.Included, Members: []string{"ada"}})
		}
		return l.Next().Changes
	}
	for i, c := range changeOften(kept + 3) {
		if many := i < 3; c.Dependents.Many != many || many != (len(c.Dependents.Flags) == 0) {
			t.Errorf("change %d names %d flags, many %v", i, len(c.Dependents.Flags), c.Dependents.Many)
		}
	}
	s.flag("t", "one-too-many", three, on, ruled(asksFor("beta")))
	l.Next()
	for _, c := range changeOften(2) {
		if !c.Dependents.Many || len(c.Dependents.Flags) > 0 {
			t.Errorf("a change of too many flags names %d", len(c.Dependents.Flags))
		}
	}
	s.changes.size = len(s.changes.ring) // each further change takes the place of one
	s.flag("t", "one-too-many", events.FlagDeleted{})
	changeOften(2 * s.changes.size)
	if n := s.changes.named; n != kept*MaxNamedFlags {
		t.Errorf("%d names are counted, want %d", n, kept*MaxNamedFlags)
	}
}
