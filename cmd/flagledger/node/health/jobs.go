package health

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/commands/jobs"
)

var (
	jobsDesc = prometheus.NewDesc("flagledger_jobs",
		"Jobs that are not completed, by kind and state; discarded ones were given up.", []string{"kind", "state"}, nil)
	reactionsLagDesc = prometheus.NewDesc("flagledger_reactions_lag_events",
		"Events from which no jobs have been made yet.", nil, nil)
	passedOverDesc = prometheus.NewDesc("flagledger_reactions_passed_over_events",
		"Events that this node could make no jobs from.", nil, nil)
)

// reactionsLate is the lag from which /health reports that follow-up work is late.
const reactionsLate = 10 * time.Second

// jobsObservation is the last observation of the jobs and the reactions.
type jobsObservation struct {
	counts []jobs.Count
	lag    int
	behind time.Duration

	anotherLog bool
}

func (m *Monitor) observeJobs(ctx context.Context) (o jobsObservation, err error) {
	if o.counts, err = m.Jobs.Counts(ctx); err != nil {
		return o, err
	}
	o.anotherLog = m.Reactions.AnotherLog()
	o.lag, o.behind, err = m.Reactions.Lag(ctx)
	return o, err
}

func (o jobsObservation) problems() (list []string) {
	if slices.ContainsFunc(o.counts, func(c jobs.Count) bool { return c.Failing > 0 }) {
		list = append(list, "jobs failed five times or were given up")
	}
	if o.behind > reactionsLate {
		list = append(list, fmt.Sprintf("no jobs have been made for more than %v from what has happened", reactionsLate))
	}
	if o.anotherLog {
		list = append(list,
			"the event store holds another log than jobs were made from; what it held when that was noticed makes none")
	}
	return list
}

func (m *Monitor) collectJobs(ch chan<- prometheus.Metric, o jobsObservation) {
	for _, c := range o.counts {
		ch <- prometheus.MustNewConstMetric(jobsDesc, prometheus.GaugeValue, float64(c.N), c.Kind, c.State)
	}
	ch <- prometheus.MustNewConstMetric(reactionsLagDesc, prometheus.GaugeValue, float64(o.lag))
	ch <- prometheus.MustNewConstMetric(passedOverDesc, prometheus.GaugeValue, float64(m.Reactions.Skipped()))
}

// CountAttempts counts the attempts at jobs on this node by outcome.
func CountAttempts(metrics prometheus.Registerer) func(kind string, outcome jobs.Outcome) {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flagledger_job_attempts_total",
		Help: "Attempts at jobs on this node, by how they went: completed, failed, postponed or interrupted.",
	}, []string{"kind", "outcome"})
	metrics.MustRegister(attempts)
	return func(kind string, outcome jobs.Outcome) { attempts.WithLabelValues(kind, string(outcome)).Inc() }
}
