package writer

import (
	"flagledger/events"
)

// ListLimits lists the limits that the writer enforces.
func ListLimits() []events.Limit {
	waitsFirst := "after a wait of " + events.PeriodText(writeTimeout)
	return []events.Limit{
		{
			Group: events.ConcurrencyLimits, Name: "changes", Max: tenantCommands, Per: "tenant", Nodes: events.EachNode,
			Status: 429, Beyond: waitsFirst,
		},
		{
			Group: events.ConcurrencyLimits, Name: "changes of one flag, project, person or tenant", Max: 1, Per: "stream",
			Nodes: events.EachNode, Status: 429, Beyond: waitsFirst,
		},
	}
}
