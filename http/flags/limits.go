package flags

import (
	"flagledger/events"
	"flagledger/http/rest"
)

// ListLimits lists the limits of operations of flags.
func ListLimits() []events.Limit {
	return []events.Limit{
		rest.RequestLimit("flags that one call reverts", events.CountText(maxRevertsPerCall), "request", 0,
			"the next call continues"),
		rest.RequestLimit("the JSON Patch of a comparison", events.SizeText(smallPatch)+", or the flag's", "answer", 0,
			"it replaces the flag"),
	}
}
