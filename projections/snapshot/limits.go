package snapshot

import (
	"slices"

	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage/counted"
)

// ListLimits lists the limits of evaluations and of a node's memory.
func ListLimits() []events.Limit {
	const perTenant = "tenant; free: creator"
	memory := func(name string, most int, unit, per, beyond string) events.Limit {
		return events.Limit{
			Group: events.MemoryLimits, Name: name, Max: most, Unit: unit, Per: per, Nodes: events.EachNode, Beyond: beyond,
		}
	}
	return slices.Concat(evaluation.ListLimits(), []events.Limit{
		memory("changes that a stream can resume within", maxChanges, "", "", "clients fetch all"),
		memory("usage: outcomes that are told apart in an hour", counted.MaxOutcomes, "", perPair, "counted as the rest"),
		memory("usage: flags and environments told apart in an hour", maxUses, "", perTenant,
			"environments are counted together"),
		memory("usage: clients told apart in an hour", maxCallers, "", perPair, "counted without a name"),
		memory("usage: clients after the first, of all flags", maxCallerPages*perCallerPage, "", perTenant,
			"counted without a name"),
		memory("usage: outcomes with their values", maxOutcomeBytes, events.UnitBytes, perTenant, "counted as the rest"),
		memory("usage: past hours while the database is down", maxPast, events.UnitBytes, "",
			"counted in the running hour"),
	})
}

const perPair = "flag and environment"
