package http

import (
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/projections/snapshot"
)

// reasons counts evaluations by reason, those of all tenants together: no tenant makes a series of metrics up.
type reasons map[snapshot.Reason]prometheus.Counter

func newReasons(metrics *prometheus.Registry) reasons {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flagledger_evaluations_total", Help: "Evaluations of flags that calls named, by reason. Calls for all flags are no evaluations.",
	}, []string{"reason"})
	metrics.MustRegister(total)
	by := reasons{}
	for _, reason := range []snapshot.Reason{snapshot.Archived, snapshot.Off, snapshot.RuleMatch, snapshot.Fallthrough} {
		by[reason] = total.WithLabelValues(string(reason))
	}
	return by
}
