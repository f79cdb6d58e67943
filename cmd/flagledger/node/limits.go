package node

import (
	"flagledger/events"
	"flagledger/http/quota"
)

// ListLimits lists the limits that a node's settings determine.
func ListLimits() []events.Limit {
	return []events.Limit{
		{
			Group: events.ConcurrencyLimits, Name: "connections", Max: addressConnections, Per: quota.PerSite,
			Nodes: events.EachNode, Beyond: "closed at once",
		},
		{
			Group: events.RequestLimits, Name: "a query of the database", Value: events.PeriodText(queryTimeout),
			Per: "query", Status: 503,
		},
		{
			Group: events.RequestLimits, Name: "an event of the log", Max: events.MaxEventBytes, Unit: events.UnitBytes,
			Per: "event", Status: 422,
		},
	}
}
