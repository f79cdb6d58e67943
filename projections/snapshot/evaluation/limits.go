package evaluation

import (
	"time"

	"flagledger/events"
)

// ListLimits lists what evaluations may take.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.RequestLimit("comparing for one evaluation",
			"some "+events.PeriodText(time.Duration(maxEffort)*effortTime), 422, ""),
		events.RequestLimit("a text that regular expressions are matched with", events.SizeText(maxMatched), 0,
			"it does not match"),
	}
}
