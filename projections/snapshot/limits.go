package snapshot

import (
	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

// ListLimits lists the limits of evaluations and of a node's memory.
func ListLimits() []events.Limit {
	return append(evaluation.ListLimits(), events.Limit{
		Group: events.MemoryLimits, Name: "changes that a stream can resume within", Max: maxChanges, Nodes: events.EachNode,
		Beyond: "clients fetch all",
	})
}
