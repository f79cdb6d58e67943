package flags

import (
	"flagledger/events"
)

// ListLimits lists the limits of operations of flags.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.RequestLimit("flags that one call reverts", events.CountText(maxRevertsPerCall), 0,
			"the next call continues"),
	}
}
