package http

import (
	"fmt"

	"flagledger/events"
	"flagledger/http/quota"
)

// evaluationLimits lists the limits of evaluations and streams.
func evaluationLimits() []events.Limit {
	of, streams := requestLimit, DefaultStreamLimits()
	return []events.Limit{
		of("evaluating many flags", events.PeriodText(maxEvaluating), "request", 503, ""),
		fieldLimit(maxFlagKeys, "keys", 422, "flagKeys"),
		of("an explanation's values",
			fmt.Sprintf("%s each, %s in all", events.SizeText(maxActual), events.SizeText(allActual)), "answer", 0, "cut"),
		of("flags that an event of a stream names", events.CountText(maxNamedFlags), "event", 0, "clients fetch all"),
		of("a stream of changes", events.PeriodText(streams.Life), "stream", 0, "clients connect again"),
		concurrencyLimit("streams of changes", events.CountText(streams.PerTenant), "tenant", 429, ""),
		concurrencyLimit("streams of changes", events.CountText(streams.PerCreator), quota.PerCreator, 429, ""),
	}
}
