package evaluation

import (
	"fmt"

	"flagledger/events"
	"flagledger/http/quota"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

// ListLimits lists the limits of evaluations and streams.
func ListLimits() []events.Limit {
	of, streams := events.RequestLimit, DefaultStreamLimits()
	return []events.Limit{
		of("evaluating many flags", events.PeriodText(maxEvaluating), 503, ""),
		events.FieldLimit(maxFlagKeys, "keys", 422, "flagKeys"),
		of("an explanation's values",
			fmt.Sprintf("%s each, %s in all", events.SizeText(maxActual), events.SizeText(allActual)), 0, "cut"),
		of("a signed context", events.SizeText(maxContext), 401, ""),
		of("flags that an event of a stream names", events.CountText(snapshot.MaxNamedFlags), 0, "clients fetch all"),
		of("a stream of changes", events.PeriodText(streams.MaxAge), 0, "clients connect again"),
		events.FieldLimit(maxReported, "counts", 422, "counts"),
		rest.ConcurrencyLimit("streams of changes", events.CountText(streams.PerTenant), "tenant", 429, ""),
		rest.ConcurrencyLimit("streams of changes, until browser keys open none",
			events.CountText(browserStreams(streams.PerTenant)), "tenant", 429, ""),
		rest.ConcurrencyLimit("streams with browser keys", events.CountText(browserStreamsPerNetwork),
			"tenant and "+quota.PerNetwork, 429, ""),
		rest.ConcurrencyLimit("streams of changes", events.CountText(streams.PerCreator), quota.PerCreator, 429, ""),
		rest.ConcurrencyLimit("readers of the feed", events.CountText(streams.FeedReaders), "tenant", 429, ""),
	}
}
