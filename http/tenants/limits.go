package tenants

import (
	"flagledger/events"
)

// ListLimits lists the limits of invitations.
func ListLimits() []events.Limit {
	return []events.Limit{{
		Group: events.RateLimits, Name: "invitations to the platform", Max: platformInvitationsPerDay, Unit: "a day",
		Per: "platform", Nodes: events.AllNodes, Status: 429,
	}}
}
