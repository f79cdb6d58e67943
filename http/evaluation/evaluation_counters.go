package evaluation

import (
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/projections/snapshot/evaluation"
)

// evaluationCounters count the evaluations of all tenants by reason, so that no tenant can create metrics series.
type evaluationCounters map[evaluation.Reason]prometheus.Counter

func newEvaluationCounters(metrics *prometheus.Registry) evaluationCounters {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flagledger_evaluations_total",
		Help: "Evaluations of flags that calls named, by reason. Calls for all flags are no evaluations.",
	}, []string{"reason"})
	metrics.MustRegister(total)
	by := evaluationCounters{}
	for _, reason := range []evaluation.Reason{
		evaluation.Archived, evaluation.Off, evaluation.PrerequisiteFailed, evaluation.RuleMatch, evaluation.Fallthrough,
	} {
		by[reason] = total.WithLabelValues(string(reason))
	}
	return by
}
