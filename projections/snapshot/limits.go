package snapshot

import (
	"flagledger/events"
	"flagledger/projections/snapshot/evaluation"
)

// ListLimits lists the limits of evaluations and streams.
func ListLimits() []events.Limit {
	return append(evaluation.ListLimits(), events.RequestLimit("changes that a stream can resume within",
		events.CountText(maxChanges), 0, "clients fetch all"))
}
