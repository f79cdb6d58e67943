package tours

import "flagledger/events"

// ListLimits lists the limits of product tours.
func ListLimits() []events.Limit {
	return []events.Limit{
		{
			Group: events.PersonLimits, Name: "product tours set by the person, and as many set by admins", Max: maxTours,
			Per: "person", Nodes: events.AllNodes, Status: 409,
		},
		{Group: events.FieldLimits, Fields: []string{"tourKey"}, Max: MaxKey, Unit: events.UnitCharacters, Status: 422},
	}
}
