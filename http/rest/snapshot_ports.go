package rest

import (
	"crypto/sha256"

	"flagledger/commands/people"
	"flagledger/projections/snapshot"
)

// Live answers from memory who the caller is and what they may do. The snapshot implements it.
type Live interface {
	people.People
	// Ready is closed once the log's facts at the start are applied.
	Ready() <-chan struct{}
	// Tenant returns a tenant that is not deleted.
	Tenant(id string) (*snapshot.Tenant, bool)
	// EvaluationKey returns a key of a tenant and an environment that are not deleted, by the SHA-256 of the key as sent.
	EvaluationKey(hash [sha256.Size]byte) (*snapshot.EvaluationKey, bool)
	// Client returns an OAuth client of a tenant that is not deleted.
	Client(id string) (*snapshot.Client, bool)
}
