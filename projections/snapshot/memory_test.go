package snapshot

import (
	"fmt"
	"log/slog"
	"testing"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

// A tenant may add and delete environments without limit, and an evaluation searches a flag's.
func TestAFlagForgetsItsStatesInDeletedEnvironments(t *testing.T) {
	s := of(three, on, ruled(when("r", "pro", toA)))
	tenant, _ := s.Tenant("t")
	revision, next := events.Revision(3), events.Revision(3)
	flag := func(fact events.Fact) {
		revision++
		s.apply(events.Page{Events: []events.Recorded{recorded(events.FlagStream("t", "k"), revision, fact)}},
			slog.New(slog.DiscardHandler))
	}
	environment := func(fact events.Fact) {
		next++
		s.apply(events.Page{Events: []events.Recorded{recorded(events.TenantStream("t"), next, fact)}},
			slog.New(slog.DiscardHandler))
	}
	kept := events.EnvironmentRef{ID: "kept", Name: "kept"}
	environment(events.EnvironmentAdded{Environment: kept})
	flag(rulesIn(kept, when("k", "pro", toB)))
	flag(events.FlagEnabled{Environment: kept})
	for i := range 1000 {
		e := events.EnvironmentRef{ID: fmt.Sprint("preview ", i), Name: "preview"}
		environment(events.EnvironmentAdded{Environment: e})
		flag(rulesIn(e, when("p", "pro", toB)))
		flag(events.FlagEnabled{Environment: e})
		environment(events.EnvironmentDeleted{Environment: e})
		flag(events.FlagEnabled{Environment: e}) // as a node that does not know yet
	}
	f, _ := tenant.Flag("k")
	if n := len(f.State().Enabled); n > maxEnabled {
		t.Errorf("it is enabled in %d environments", n)
	}
	pro := &evaluation.Context{Attributes: attributes(`{"plan":"pro"}`)}
	for id, want := range map[string]string{production.ID: "r", kept.ID: "k"} {
		if r, err := f.Evaluate(id, pro); err != nil || r.RuleID != want || r.Version != revision {
			t.Errorf("in %s it serves %+v, %v", id, r, err)
		}
	}
	if s.Faults() != 0 {
		t.Errorf("%d faults", s.Faults())
	}
}
