package queries

import "flagledger/projections/snapshot"

// Ready is closed once evaluation can be answered.
func (q *Queries) Ready() <-chan struct{} { return q.snapshot.Ready() }

// Tenant finds a tenant and all that requests ask of it, in memory.
func (q *Queries) LiveTenant(id string) (*snapshot.Tenant, bool) { return q.snapshot.Tenant(id) }

// User finds a person, in memory.
func (q *Queries) LiveUser(id string) snapshot.User { return q.snapshot.User(id) }

// SessionEnded reports whether a person has signed out of a session, from memory.
func (q *Queries) SessionEnded(userID, sessionID string) bool {
	return q.snapshot.SessionEnded(userID, sessionID)
}
