package state

import (
	"strings"

	"flagledger/events"
)

func describeInvitation(e events.Recorded) (Description, error) {
	fact, ok := e.Fact.(events.InvitationFact)
	if !ok {
		return Description{}, notOfStream(e)
	}
	changes := Changes{}
	entry := Description{
		ResourceType: "invitation",
		ResourceID:   strings.TrimPrefix(e.Stream, events.InvitationStream("")),
		Changes:      changes,
	}
	switch fact := fact.(type) {
	case events.InvitationCreated:
		changes.add("role", nil, fact.Role)
		changes.add("status", nil, "pending")
		changes.add("expiresAt", nil, timeOrNull(fact.ExpiresAt))
	case events.InvitationResent:
		changes.addNew("expiresAt", timeOrNull(fact.ExpiresAt))
	case events.InvitationRevoked:
		changes.add("status", "pending", "revoked")
	case events.InvitationAccepted:
		changes.add("status", "pending", "accepted")
		changes.add("userId", nil, fact.UserID)
	}
	return entry, nil
}
