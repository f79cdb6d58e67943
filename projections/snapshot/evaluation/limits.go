package evaluation

import (
	"time"

	"flagledger/events"
)

// ListLimits lists what evaluations may take.
func ListLimits() []events.Limit {
	return []events.Limit{
		{
			Group: events.RequestLimits, Name: "comparing for one evaluation", Per: "evaluation", Status: 422,
			Value: "some " + events.PeriodText(time.Duration(maxEffort)*effortTime),
		},
		{
			Group: events.RequestLimits, Name: "a text that regular expressions are matched with", Max: maxMatched,
			Unit: events.UnitBytes, Per: "attribute", Beyond: "it does not match",
		},
		{
			Group: events.MemoryLimits, Name: "compiled regular expressions", Max: maxPrograms, Unit: events.UnitBytes,
			Nodes: events.EachNode, Beyond: "compiled again",
		},
	}
}
