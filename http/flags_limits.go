package http

import (
	"flagledger/events"
)

// flagLimits lists the limits of operations of flags.
func flagLimits() []events.Limit {
	return []events.Limit{
		requestLimit("flags that one call reverts", events.CountText(maxRevertsPerCall), "request", 0,
			"the next call continues"),
		requestLimit("the JSON Patch of a comparison", events.SizeText(smallPatch)+", or the flag's", "answer", 0,
			"it replaces the flag"),
	}
}
