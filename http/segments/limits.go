package segments

import "flagledger/events"

// ListLimits lists the limits of this package.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.RequestLimit("a body with members of a segment", events.SizeText(maxMembersBody), 400, ""),
	}
}
