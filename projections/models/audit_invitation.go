package models

import (
	"strings"

	"flagledger/events"
)

func auditInvitation(e events.Recorded) (auditEntry, error) {
	fact, ok := e.Fact.(events.InvitationFact)
	if !ok {
		return auditEntry{}, notOfStream(e)
	}
	changes := fieldChanges{}
	entry := auditEntry{
		resourceType: "invitation",
		resourceID:   strings.TrimPrefix(e.Stream, events.InvitationStream("")),
		changes:      changes,
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
