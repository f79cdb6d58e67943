package directory

import "flagledger/events"

// maxSavedUses limits the stored tenant visits that a node caches.
const maxSavedUses = 100_000

// ListLimits lists the limits of the directory.
func ListLimits() []events.Limit {
	return []events.Limit{{
		Group: events.MemoryLimits, Name: "cached last uses of tenants", Max: maxSavedUses, Nodes: events.EachNode,
		Beyond: "read from the database",
	}}
}
