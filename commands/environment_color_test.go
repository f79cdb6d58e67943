package commands

import (
	"fmt"
	"testing"

	"flagledger/events"
	"flagledger/events/state"
)

// The first environments of a tenant have different colors, although defaults by name collide.
func TestNewEnvironmentsDifferInColor(t *testing.T) {
	tenant := state.Tenant{Exists: true}
	seen := map[string]string{}
	for i := range 12 {
		e := events.EnvironmentRef{ID: fmt.Sprint("e", i), Name: fmt.Sprint("environment-", i)}
		fact := events.EnvironmentAdded{Environment: e, Color: distinctColor(tenant, e)}
		tenant.Apply(events.Recorded{Event: events.Event{Fact: fact}})
		color := tenant.Arrangement()[i].Color
		if other := seen[color]; other != "" {
			t.Errorf("%s has the color %s of %s", e.Name, color, other)
		}
		seen[color] = e.Name
	}
}
