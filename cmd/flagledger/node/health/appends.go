package health

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flagledger/events"
)

// measuredStore counts and times what is appended.
type measuredStore struct {
	events.Store
	disk     *Disk
	duration prometheus.Histogram
	appended *prometheus.CounterVec
}

// Measure returns a store whose appends are counted and timed in metrics, and whose full disk is noted.
func Measure(store events.Store, disk *Disk, registry *prometheus.Registry) events.Store {
	m := measuredStore{
		Store: store,
		disk:  disk,
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "flagledger_append_duration_seconds", Help: "Duration of successful appends to the event store.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 13),
		}),
		appended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flagledger_events_appended_total", Help: "Events that this node appended, by type.",
		}, []string{"type"}),
	}
	registry.MustRegister(m.duration, m.appended)
	return m
}

// Append implements events.Store.
func (m measuredStore) Append(
	ctx context.Context, stream string, expected events.Revision, batch []events.Event,
) (events.Appended, error) {
	began := time.Now()
	appended, err := m.Store.Append(ctx, stream, expected, batch)
	m.disk.note(err)
	if err == nil {
		m.duration.Observe(time.Since(began).Seconds())
		for _, e := range batch {
			m.appended.WithLabelValues(e.Fact.StoredName()).Inc()
		}
	}
	return appended, err
}
