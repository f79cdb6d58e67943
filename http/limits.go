package http

import (
	"slices"

	"flagledger/events"
)

// ListLimits lists the limits of this package and its rooms.
func ListLimits() []events.Limit {
	return slices.Concat(restLimits(), evaluationLimits(), flagLimits(), auditLimits(), billingLimits(), accountLimits(),
		tenantLimits())
}
