package usage

import (
	"fmt"

	"flagledger/events"
)

// ListLimits lists the limits of metrics, and how long usage is stored.
func ListLimits() []events.Limit {
	of := events.RequestLimit
	memory := func(name, value, per string) events.Limit {
		return events.Limit{
			Group: events.TenantLimits, Name: name, Value: value, Per: per, Nodes: events.EachNode, Beyond: "counted together",
		}
	}
	return []events.Limit{
		of("points of metrics", events.CountText(MaxPoints), 422, ""),
		of("values in a flag's metrics", events.SizeText(maxOutcomeBytes), 422, ""),
		of("outcomes of a point, clients, flags in metrics",
			fmt.Sprintf("%d, %d, %d", maxOutcomes, MaxClients, topFlags), 0, "the rest together, or left out"),
		memory("usage that is told apart in an hour", fmt.Sprintf("%d outcomes, %d clients", maxOutcomes, maxClients),
			"flag and environment"),
		memory("all usage that is told apart in an hour", events.SizeText(maxBytes), "tenant; free: creator"),
		{
			Group: events.TenantLimits, Name: "stored usage", Per: "flag", Nodes: events.AllNodes, Beyond: "deleted",
			Value: fmt.Sprintf("hours for %d days, days for %d", DaysOfHours, dailyRetentionDays),
		},
	}
}
