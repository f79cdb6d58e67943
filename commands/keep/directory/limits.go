package directory

import "flagledger/events"

// maxCachedVisits limits the stored tenant visits that a node caches.
const maxCachedVisits = 100_000

// ListLimits lists the limits of the directory.
func ListLimits() []events.Limit {
	return []events.Limit{{
		Group: events.MemoryLimits, Name: "cached tenant visits", Max: maxCachedVisits, Nodes: events.EachNode,
		Beyond: "read from the database",
	}}
}
