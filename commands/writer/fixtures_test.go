package writer

import (
	"encoding/json"
	"strings"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
)

var (
	testEnvironment = events.EnvironmentRef{ID: "e1", Name: "production"}
	testFlag        = commands.FlagRef{TenantID: "t", Key: "k"}
)

func rawJSON(text string) json.RawMessage { return json.RawMessage(text) }

// textOf returns a JSON string of n bytes.
func textOf(n int) json.RawMessage { return rawJSON(`"` + strings.Repeat("x", n-2) + `"`) }

// foldOf returns the state after facts.
func foldOf[S any, P state.State[S]](facts []events.Fact) S {
	var s S
	for i, fact := range facts {
		P(&s).Apply(events.Recorded{
			Event:    events.Event{Fact: fact, Metadata: events.Metadata{Time: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)}},
			Revision: events.Revision(i + 1), Name: fact.StoredName(),
		})
	}
	return s
}
