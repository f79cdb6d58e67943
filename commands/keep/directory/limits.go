package directory

import "flagledger/events"

// maxSavedUses is how many uses of tenants a node caches that are in the database.
const maxSavedUses = 100_000

// ListLimits lists the limits of the directory.
func ListLimits() []events.Limit {
	return []events.Limit{{
		Group: events.MemoryLimits, Name: "cached last uses of tenants", Max: maxSavedUses, Nodes: events.EachNode,
		Beyond: "read from the database",
	}}
}
