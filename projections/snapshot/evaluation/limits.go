package evaluation

import (
	"time"

	"flagledger/events"
)

const (
	// maxFlagChain limits the flags that require each other in a row, the first included.
	maxFlagChain = 10
	// maxRequired limits the other flags that a flag requires, also through others, in an environment.
	maxRequired = 100
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
