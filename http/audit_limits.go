package http

import (
	"flagledger/events"
)

// auditLimits lists the limits of the audit trail.
func auditLimits() []events.Limit {
	return []events.Limit{
		requestLimit("an export of the audit trail", events.PeriodText(maxExport), "request", 0,
			"it ends; continue with `after`"),
	}
}
