package audit

import (
	"flagledger/events"
	"flagledger/http/rest"
)

// ListLimits lists the limits of the audit trail.
func ListLimits() []events.Limit {
	return []events.Limit{
		rest.RequestLimit("an export of the audit trail", events.PeriodText(maxExport), "request", 0,
			"it ends; continue with `after`"),
	}
}
