package node

import (
	"flagledger/events"
	"flagledger/http"
	"flagledger/http/quota"
)

// ListLimits lists the limits that a node's settings determine.
func ListLimits() []events.Limit {
	free := flagBounds{}.perTenant(events.FreePlan)
	together := unpaidFactor * free
	return []events.Limit{
		{
			Group: events.TenantLimits, Name: "all flags", Max: together, Unit: events.UnitBytes,
			Per: quota.PerCreator, Nodes: events.AllNodes, Status: 409,
		},
		{
			Group: events.RateLimits, Name: "written bytes", Nodes: events.EachNode, Status: 429, Per: quota.PerCreator,
			Value: events.SizeText(http.DailyBytes(together)) + " a day",
		},
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
