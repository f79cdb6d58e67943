package http

import (
	"flagledger/events"
)

// tenantLimits lists the limits of invitations.
func tenantLimits() []events.Limit {
	return []events.Limit{{
		Group: events.RateLimits, Name: "invitations to the platform", Max: platformInvitationsPerDay, Unit: "a day",
		Per: "platform", Nodes: events.AllNodes, Status: 429,
	}}
}
