package node

import "flagledger/events"

// ListLimits lists the limits of a node's stores.
func ListLimits() []events.Limit {
	return []events.Limit{
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
