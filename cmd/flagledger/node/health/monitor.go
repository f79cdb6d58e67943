// Package health observes a node, for /health, /metrics and the operators' view of the service.
package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"flagledger/commands/jobs"
	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/migrations/database"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/reactions"
	"flagledger/projections/snapshot"
	"flagledger/retry"
)

// Options are the parts that a Monitor observes.
type Options struct {
	Pool  *pgxpool.Pool
	Store events.Store
	// InDatabase reports that the facts are in the database too.
	InDatabase bool
	Snapshot   *snapshot.Snapshot
	Progress   *projections.Progress
	Signs      func() bool // whether tokens can be signed
	Jobs       *jobs.Client
	Reactions  *reactions.Reactions
	Disk       *Disk
	Data       string // the data folder; empty for none
}

// Monitor observes the read models, the snapshot and the jobs every two seconds.
type Monitor struct {
	Options
	current atomic.Pointer[observation]
}

// New returns a monitor.
func New(o Options) *Monitor {
	m := &Monitor{Options: o}
	m.current.Store(&observation{upToDate: time.Now()})
	return m
}

type observation struct {
	head     events.Position
	statuses []projections.Status
	// building holds the progress of rebuilds by read model.
	building map[string]events.Position
	jobs     jobsObservation
	skew     time.Duration // of this node's clock ahead of the database's
	ahead    time.Duration // of the log's last time ahead of the store's clock
	// storeErr is the error of an event store other than the database, databaseErr of the rest.
	storeErr, databaseErr error
	// readOnly reports that the database takes no writes.
	readOnly bool
	// upToDate is when the snapshot last held all of the log.
	upToDate time.Time
}

const (
	monitorInterval = 2 * time.Second
	headTimeout     = time.Second
	moveTimeout     = 2 * time.Second // to a database server that takes writes
	// statusTimeout is longer than the others, and applies to each part: measuring a large lag takes a while.
	statusTimeout = 5 * time.Second
	// failingFor and modelLate are how long a read model must have failed, or lag, before health reports it.
	failingFor = 5 * time.Second
	modelLate  = 30 * time.Second
)

var (
	lagEventsDesc = prometheus.NewDesc("flagledger_projection_lag_events",
		"Events that a read model has not taken in yet.", []string{"projection"}, nil)
	lagSecondsDesc = prometheus.NewDesc("flagledger_projection_lag_seconds",
		"Age of the oldest event that a read model has not taken in yet.", []string{"projection"}, nil)
	parkedDesc = prometheus.NewDesc("flagledger_projection_parked_streams", "Streams that a read model no longer follows.",
		[]string{"projection"}, nil)
	snapshotAgeDesc = prometheus.NewDesc("flagledger_snapshot_age_seconds",
		"Time since the snapshot was last seen to hold all of the log.", nil, nil)
	faultsDesc = prometheus.NewDesc("flagledger_snapshot_faults", "Events that the snapshot could not take in.", nil, nil)
)

// Run observes until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	m.observe(ctx)
	retry.Every(ctx, monitorInterval, func() { m.observe(ctx) })
}

func (m *Monitor) observe(ctx context.Context) {
	o := *m.current.Load()
	if written, from := m.Snapshot.FromDisk(); from {
		o.upToDate = written
	}
	headErr := within(ctx, headTimeout, func(ctx context.Context) error {
		head, err := m.Store.Head(ctx)
		if err != nil {
			return err
		}
		if o.head = head; m.Snapshot.Position().Compare(head) >= 0 {
			o.upToDate = time.Now()
		}
		return nil
	})
	if headErr != nil { // set at once: if the database hangs, all that follows waits for its timeout
		early := o
		if m.InDatabase {
			early.databaseErr = headErr
		} else {
			early.storeErr = headErr
		}
		m.current.Store(&early)
	}
	if readOnly, err := m.checkReadOnly(ctx); err == nil || headErr != nil {
		o.readOnly = readOnly
	}
	statusErr := within(ctx, statusTimeout, func(ctx context.Context) error {
		statuses, err := projections.Statuses(ctx, m.Pool, models.All(), m.Store)
		if err != nil {
			return err
		}
		o.statuses = statuses
		o.building, err = projections.Building(ctx, m.Pool)
		return err
	})
	jobsErr := within(ctx, statusTimeout, func(ctx context.Context) error {
		seen, err := m.observeJobs(ctx)
		if err == nil {
			o.jobs = seen
		}
		return err
	})
	_ = within(ctx, headTimeout, func(ctx context.Context) error { // a busy pool is reachable
		skew, err := ClockSkew(ctx, m.Pool, time.Now)
		if err == nil {
			o.skew = skew
		}
		return err
	})
	if headErr == nil {
		_ = within(ctx, headTimeout, func(ctx context.Context) error {
			now, last, err := m.Store.Clock(ctx)
			if err == nil {
				o.ahead = last.Sub(now)
			}
			return err
		})
	}
	o.storeErr, o.databaseErr = nil, cmp.Or(headErr, statusErr, jobsErr)
	// The others ask the event store too.
	if !m.InDatabase && (headErr != nil || errors.Is(o.databaseErr, events.ErrUnavailable)) {
		o.storeErr, o.databaseErr = o.databaseErr, within(ctx, headTimeout, m.Pool.Ping)
	}
	m.current.Store(&o)
}

// checkReadOnly reports whether the database takes no writes. If so, it looks for a server that does and moves all
// connections to it.
func (m *Monitor) checkReadOnly(ctx context.Context) (readOnly bool, err error) {
	err = within(ctx, statusTimeout, func(ctx context.Context) (err error) { // others wait for connections meanwhile
		readOnly, err = database.ServerIsReadOnly(ctx, m.Pool)
		return err
	})
	if readOnly {
		_ = within(ctx, moveTimeout, func(ctx context.Context) error { return database.FindWriter(ctx, m.Pool) })
	}
	if database.IsReadOnlyError(err) { // no connection is left, and none of several hosts takes writes
		return true, nil
	}
	return readOnly, err
}

func within(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return do(ctx)
}

// Problems lists the current problems. Anyone may read it, so it names no streams and no counts that reveal tenants'
// activity: the log, the metrics and `flagledger projections status` do.
func (m *Monitor) Problems() []string {
	o := m.current.Load()
	var list []string
	switch {
	case errors.Is(o.storeErr, eventstore.ErrCredentials):
		list = append(list,
			"the event store refuses the credentials of FLAGLEDGER_EVENTSTORE_URL: changes fail, flags are evaluated")
	case o.storeErr != nil:
		list = append(list, "the event store cannot be reached: changes fail, flags are listed and evaluated")
	}
	switch {
	case o.readOnly || database.IsReadOnlyError(o.databaseErr):
		list = append(list,
			"the database takes no writes, as it is a standby or read-only: changes fail, flags are evaluated")
	case o.databaseErr != nil:
		list = append(list, "the database cannot be reached: changes and lists fail, flags are evaluated")
	case !m.Signs():
		list = append(list, "the signing keys have not been read yet: sign-in fails, and no tokens are issued")
	}
	list = append(list, m.Disk.problems(m.Data)...)
	list = append(list, skewProblems(o.skew)...)
	list = append(list, aheadProblems(o.ahead)...)
	if o.storeErr == nil && o.databaseErr == nil && !o.readOnly {
		for _, name := range m.Progress.Failing(failingFor) {
			list = append(list, fmt.Sprintf("the read model %s cannot be updated; retrying", name))
		}
	}
	for _, s := range o.statuses {
		if s.Built && s.Behind > modelLate {
			list = append(list, fmt.Sprintf("the read model %s is more than %v behind", s.Name, modelLate))
		}
		if !s.Built {
			list = append(list, fmt.Sprintf("the read model %s is being built", s.Name))
		}
		if len(s.Parked) > 0 {
			list = append(list, fmt.Sprintf("the read model %s has parked streams", s.Name))
		}
	}
	if m.Snapshot.Faults() > 0 {
		list = append(list, "the snapshot left out events")
	}
	list = append(list, m.Snapshot.Troubles(time.Now())...)
	return append(list, o.jobs.problems()...)
}

// Describe implements prometheus.Collector.
func (m *Monitor) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lagEventsDesc, lagSecondsDesc, parkedDesc, snapshotAgeDesc, faultsDesc, jobsDesc,
		reactionsLagDesc, passedOverDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Monitor) Collect(ch chan<- prometheus.Metric) {
	o := m.current.Load()
	for _, s := range o.statuses {
		ch <- prometheus.MustNewConstMetric(lagEventsDesc, prometheus.GaugeValue, float64(s.Lag), s.Name)
		ch <- prometheus.MustNewConstMetric(lagSecondsDesc, prometheus.GaugeValue, s.Behind.Seconds(), s.Name)
		ch <- prometheus.MustNewConstMetric(parkedDesc, prometheus.GaugeValue, float64(len(s.Parked)), s.Name)
	}
	ch <- prometheus.MustNewConstMetric(snapshotAgeDesc, prometheus.GaugeValue, time.Since(o.upToDate).Seconds())
	ch <- prometheus.MustNewConstMetric(faultsDesc, prometheus.GaugeValue, float64(m.Snapshot.Faults()))
	m.collectJobs(ch, o.jobs)
}
