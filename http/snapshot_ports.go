package http

import (
	"context"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/projections/snapshot"
)

// Live answers from memory who the caller is and what they may do. The snapshot implements it.
type Live interface {
	commands.People
	// Ready is closed once the log's facts at the start are applied.
	Ready() <-chan struct{}
	// Tenant returns a tenant that is not deleted.
	Tenant(id string) (*snapshot.Tenant, bool)
	// Client returns an OAuth client of a tenant that is not deleted.
	Client(id string) (*snapshot.Client, bool)
}

// Changes reports flag changes to streams. The snapshot implements it.
type Changes interface {
	// Listen subscribes to the changes in an environment of a tenant. It returns nil if the tenant already has most
	// listeners.
	Listen(t *snapshot.Tenant, environmentID string, most int) *snapshot.Listener
	// Await waits until a tenant's change at a position is applied, or until ctx ends.
	Await(ctx context.Context, t *snapshot.Tenant, position events.Position)
	// Position returns the position up to which the log is applied.
	Position() events.Position
	// LogName identifies the log that positions belong to.
	LogName() string
}
