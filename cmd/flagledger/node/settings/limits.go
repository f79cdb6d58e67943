package settings

import (
	"flagledger/events"
	"flagledger/http/quota"
)

// ListLimits lists the limits that settings determine.
func ListLimits() []events.Limit {
	return []events.Limit{
		{
			Group: events.ConcurrencyLimits, Name: "connections", Max: addressConnections, Per: quota.PerSite,
			Nodes: events.EachNode, Beyond: "closed at once",
		},
	}
}
