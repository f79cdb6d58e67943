package audit

import (
	"flagledger/events"
)

// ListLimits lists the limits of the audit trail.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.RequestLimit("an export of the audit trail", events.PeriodText(maxExport), 0,
			"it ends; continue with `after`"),
	}
}
