package commands

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"flagledger/events"
	"flagledger/events/state"
)

// scenario holds the given facts of a decision.
type scenario[S any] struct {
	t     *testing.T
	facts []events.Fact
	err   error
}

func stateOf[S any, P state.State[S]](facts []events.Fact) S {
	var s S
	for i, fact := range facts {
		P(&s).Apply(events.Recorded{
			Event:    events.Event{Fact: fact, Metadata: events.Metadata{Time: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)}},
			Revision: events.Revision(i + 1), Name: fact.StoredName(),
		})
	}
	return s
}

func when[S any, P state.State[S]](t *testing.T, given []events.Fact, cmd Command[S]) scenario[S] {
	t.Helper()
	facts, err := cmd.Decide(stateOf[S, P](given))
	return scenario[S]{t, facts, err}
}

func (s scenario[S]) then(want ...events.Fact) {
	s.t.Helper()
	if s.err != nil {
		s.t.Fatalf("refused: %v", s.err)
	}
	if diff := cmp.Diff(want, s.facts); diff != "" {
		s.t.Errorf("facts differ (-want +got):\n%s", diff)
	}
}

func (s scenario[S]) refused(kind Kind, fields ...string) {
	s.t.Helper()
	if KindOf(s.err) != kind || s.err == nil {
		s.t.Fatalf("got %v and %v, want a refusal of kind %d", s.facts, s.err, kind)
	}
	refusal, _ := errors.AsType[*Error](s.err)
	if got := slices.Sorted(maps.Keys(refusal.Fields)); !slices.Equal(got, slices.Sorted(slices.Values(fields))) {
		s.t.Errorf("fields %v are at fault, want %v: %v", got, fields, refusal.Fields)
	}
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }
