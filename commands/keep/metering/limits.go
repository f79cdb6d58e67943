package metering

import (
	"fmt"

	"flagledger/commands/keep/metering/counted"
	"flagledger/events"
)

// ListLimits lists how long usage is stored.
func ListLimits() []events.Limit {
	return []events.Limit{{
		Group: events.MemoryLimits, Name: "stored usage", Nodes: events.AllNodes, Beyond: "deleted",
		Value: fmt.Sprintf("hours for %d days, days for %d", counted.DaysOfHours, dailyRetentionDays),
	}}
}
