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
	required := func(name string, most int) events.Limit {
		return events.Limit{
			Group: events.TenantLimits, Name: name, Max: most, Per: "flag and environment", Nodes: events.AllNodes, Status: 422,
		}
	}
	return []events.Limit{
		required("flags that require each other in a row", maxFlagChain),
		required("other flags that a flag requires, also through others", maxRequired),
		events.RequestLimit("comparing for one evaluation",
			"some "+events.PeriodText(time.Duration(maxEffort)*effortTime), 422, ""),
		events.RequestLimit("a text that regular expressions are matched with", events.SizeText(maxMatched), 0,
			"it does not match"),
	}
}
