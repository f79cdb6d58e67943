package people

import (
	"fmt"

	"flagledger/events"
)

// ListLimits lists the limits that this package enforces.
func ListLimits() []events.Limit {
	return []events.Limit{{
		Group: events.PersonLimits, Name: "tenants that one sign-in joins", Max: maxJoins, Per: "person",
		Value:  fmt.Sprintf("%d, in %s", maxJoins, events.PeriodText(joinTime)),
		Beyond: "joined at the next sign-in",
	}}
}
