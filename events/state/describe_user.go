package state

import (
	"strings"

	"flagledger/events"
)

func describeUser(e events.Recorded) (Description, error) {
	fact, ok := e.Fact.(events.UserFact)
	if !ok {
		return Description{}, notOfStream(e)
	}
	changes := Changes{}
	entry := Description{
		ResourceType: "user",
		ResourceID:   strings.TrimPrefix(e.Stream, events.UserStream("")),
		Changes:      changes,
	}
	switch fact := fact.(type) {
	case events.UserRegistered:
		changes.add("provider", nil, fact.Provider)
	case events.SessionEnded:
		changes.add("sessionId", fact.SessionID, nil)
	case events.SessionsEnded:
		changes.add("sessionsEndedBefore", nil, timeOrNull(fact.Before))
	case events.PlatformRoleChanged:
		changes.add("role", orNull(string(fact.From)), orNull(string(fact.To)))
	case events.UserDeactivated:
		changes.add("active", true, false)
	case events.UserReactivated:
		changes.add("active", false, true)
	case events.UserErased:
	}
	return entry, nil
}
