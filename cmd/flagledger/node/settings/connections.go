package settings

import (
	"flagledger/events/postgres"
	"flagledger/projections"
)

// Connections to the database that a node needs beside its pool.
const (
	snapshotSubscriptions = 1
	reactionSubscriptions = 1 // on one node
	jobListeners          = 1 // River takes one from the pool for good
	partConnections       = projections.Connections + jobListeners
	// factConnections are needed only if Postgres holds the facts. Statuses and Reactions.Lag share a subscription: the
	// monitor calls one after the other.
	factConnections = postgres.Connections + projections.Subscriptions + snapshotSubscriptions + reactionSubscriptions
)

// Limits of the setting.
const (
	defaultConnections = 16
	minPool            = 2
	maxConnections     = 1000
)

// CommandPool is a command's number of connections for reads and keepings.
const CommandPool = defaultConnections - partConnections - factConnections

// PoolSize returns how many connections the setting leaves for the pool.
func (c Config) PoolSize() (int32, error) {
	taken, n := partConnections, defaultConnections
	if c.EventStoreURL == "" {
		taken += factConnections
	}
	err := parse("FLAGLEDGER_DATABASE_CONNECTIONS", c.Connections, number(taken+minPool, maxConnections), &n)
	return int32(n - taken), err
}
