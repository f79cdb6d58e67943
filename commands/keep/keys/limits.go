package keys

import "flagledger/events"

// ListLimits lists the limits of tokens.
func ListLimits() []events.Limit {
	return []events.Limit{
		{Group: events.RequestLimits, Name: "a token", Max: maxToken, Unit: events.UnitBytes, Per: "request", Status: 401},
	}
}
