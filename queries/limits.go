package queries

import "flagledger/events"

// ListLimits lists the limits of reads.
func ListLimits() []events.Limit {
	return []events.Limit{
		events.RequestLimit("facts looked at for a page of the audit trail", events.CountText(maxExamined), 0,
			"the page ends early"),
	}
}
