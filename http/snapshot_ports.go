package http

import (
	"context"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/projections/snapshot"
)

// Live answers from memory what every request asks: who the caller is and what they may do. The snapshot implements it.
type Live interface {
	commands.People
	// Ready is closed once all that was in the log at the start is known.
	Ready() <-chan struct{}
	// Tenant finds a tenant that exists.
	Tenant(id string) (*snapshot.Tenant, bool)
	// Client finds an OAuth client of a tenant that exists.
	Client(id string) (*snapshot.Client, bool)
}

// Changes tells streams what changes. The snapshot implements it.
type Changes interface {
	// Listen hears of the changes in an environment of a tenant. It returns nil if the tenant has so many listeners
	// already.
	Listen(t *snapshot.Tenant, environmentID string, most int) *snapshot.Listener
	// Await waits until a tenant's change at a position is known, or until ctx ends.
	Await(ctx context.Context, t *snapshot.Tenant, position events.Position)
	// Position is how far the log is known.
	Position() events.Position
	// LogName tells the log that positions are of apart from others.
	LogName() string
}
