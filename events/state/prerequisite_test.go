package state_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/events"
	"flagledger/events/state"
)

// A flag requires another since the fact that named it first, whatever is demanded of it, until one names it no more.
func TestPrerequisitesSinceTheyAreRequired(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	a, b := events.Prerequisite{FlagKey: "a", Off: true}, events.Prerequisite{FlagKey: "b", Off: true}
	served := events.Prerequisite{FlagKey: "a", Serves: []events.ServedValue{{VariationID: "v"}}}
	require := func(list ...events.Prerequisite) events.Fact {
		return events.PrerequisitesChanged{Environment: events.EnvironmentRef{ID: "e"}, To: list}
	}
	var flag state.Flag
	for i, c := range []struct {
		fact events.Fact
		want []state.Prerequisite
	}{
		{events.FlagCreated{Key: "k"}, nil},
		{require(a), []state.Prerequisite{{a, at(1)}}},
		{require(b, served), []state.Prerequisite{{b, at(2)}, {served, at(1)}}},
		{require(b), []state.Prerequisite{{b, at(2)}}},
		{require(a, b), []state.Prerequisite{{a, at(4)}, {b, at(2)}}},
		{events.PrerequisitesChanged{Environment: events.EnvironmentRef{ID: "other"}}, []state.Prerequisite{{a, at(4)}, {b, at(2)}}},
		{require(), nil},
		{require(a), []state.Prerequisite{{a, at(7)}}},
		{events.FlagDeleted{}, []state.Prerequisite{{a, at(7)}}},
		{events.FlagCreated{Key: "k"}, nil},
	} {
		copied := flag.Clone()
		flag.Apply(events.Recorded{Event: events.Event{Fact: c.fact}, At: at(i), Revision: events.Revision(i)})
		if diff := cmp.Diff(c.want, flag.Prerequisites["e"]); diff != "" {
			t.Errorf("after fact %d, prerequisites differ (-want +got):\n%s", i, diff)
		}
		again := copied
		again.Apply(events.Recorded{Event: events.Event{Fact: c.fact}, At: at(i), Revision: events.Revision(i)})
		if diff := cmp.Diff(flag, again); diff != "" {
			t.Errorf("fact %d gives another state from a clone:\n%s", i, diff)
		}
	}
}
