package health

import (
	"time"

	"flagledger/http"
)

// Status returns the monitor's last observation for operators.
func (m *Monitor) Status() http.ServiceStatus {
	o := m.current.Load()
	s := http.ServiceStatus{
		EventStore: http.EventStoreStatus{
			Engine:    m.Store.Engine(),
			Reachable: o.storeErr == nil && (!m.InDatabase || o.databaseErr == nil),
			Position:  o.head.Commit,
		},
		Database:   http.DatabaseStatus{Reachable: o.databaseErr == nil, ClockSkew: o.skew.Seconds()},
		Snapshot:   http.SnapshotStatus{Age: max(0, time.Since(o.upToDate).Seconds()), LeftOut: m.Snapshot.Faults()},
		ReadModels: make([]http.ReadModelStatus, len(o.statuses)),
		Jobs:       make([]http.JobsStatus, len(o.jobs.counts)),
		JobsLag:    o.jobs.lag,
		JobsBehind: o.jobs.behind.Seconds(),
	}
	for i, r := range o.statuses {
		s.ReadModels[i] = http.ReadModelStatus{
			Name:    r.Name,
			Version: r.Version,
			Built:   r.Built,
			Lag:     r.Lag,
			Behind:  r.Behind.Seconds(),
			Parked:  len(r.Parked),
		}
		if reached, building := o.building[r.Name]; building {
			s.ReadModels[i].Rebuilt = new(min(1, float64(reached.Commit)/float64(max(1, o.head.Commit))))
		}
	}
	for i, c := range o.jobs.counts {
		s.Jobs[i] = http.JobsStatus{Kind: c.Kind, State: c.State, Count: c.N, Failing: c.Failing}
	}
	return s
}
