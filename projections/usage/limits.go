package usage

import (
	"fmt"

	"flagledger/events"
)

// ListLimits lists the limits of metrics, and how long usage is stored.
func ListLimits() []events.Limit {
	of := func(name, value string, status int, beyond string) events.Limit {
		return events.Limit{
			Group: events.RequestLimits, Name: name, Value: value, Per: "answer", Status: status, Beyond: beyond,
		}
	}
	memory := func(name string, most int, unit, per, beyond string) events.Limit {
		return events.Limit{
			Group: events.MemoryLimits, Name: name, Max: most, Unit: unit, Per: per, Nodes: events.EachNode, Beyond: beyond,
		}
	}
	const perPair = "flag and environment"
	return []events.Limit{
		of("points of metrics", events.CountText(MaxPoints), 422, ""),
		of("values in a flag's metrics", events.SizeText(maxOutcomeBytes), 422, ""),
		of("outcomes of a point, clients, flags in metrics",
			fmt.Sprintf("%d, %d, %d", maxOutcomes, MaxClients, topFlags), 0, "the rest together, or left out"),
		memory("usage: outcomes that are told apart in an hour", maxOutcomes, "", perPair, "counted as the rest"),
		memory("usage: clients that are told apart in an hour", maxClients, "", perPair, "counted without a name"),
		memory("usage: environments, outcomes and clients that are told apart in an hour", maxBytes, events.UnitBytes,
			"tenant; free: creator", "counted together"),
		{
			Group: events.MemoryLimits, Name: "stored usage", Nodes: events.AllNodes, Beyond: "deleted",
			Value: fmt.Sprintf("hours for %d days, days for %d", DaysOfHours, dailyRetentionDays),
		},
	}
}
