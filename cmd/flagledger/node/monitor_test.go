package node

import (
	"strings"
	"testing"

	"flagledger/commands/jobs"
	"flagledger/projections"
	"flagledger/projections/snapshot"
)

// Anyone may ask for the health.
func TestHealthTellsHowManyStreamsAreParkedNotWhich(t *testing.T) {
	m := newMonitor(&monitor{snapshot: snapshot.New(), progress: projections.NewProgress(nil), disk: &diskWatch{}})
	m.current.Store(&observation{statuses: []projections.Status{{Name: "history", Built: true, Parked: []projections.Parked{{Stream: "flag-t.secret-plan"}, {Stream: "user-u"}}}}})
	if got := strings.Join(m.health(), "; "); got != "the read model history has parked 2 streams" {
		t.Errorf("it tells: %s", got)
	}
}

func TestHealthTellsOfJobsThatFail(t *testing.T) {
	o := jobsObservation{
		counts: []jobs.Count{{Kind: "mail", State: "discarded", N: 2, Failing: 2}, {Kind: "mail", State: "retryable", N: 5, Failing: 1}, {Kind: "upkeep", State: "available", N: 9}},
		lag:    7, behind: reactionsLate + 1,
	}
	if got := strings.Join(o.health(), "; "); got != "3 jobs failed five times or were given up; no jobs have been made yet from the last 7 events" {
		t.Errorf("it tells: %s", got)
	}
	o = jobsObservation{counts: []jobs.Count{{Kind: "mail", State: "retryable", N: 5}}, lag: 7, behind: reactionsLate}
	if got := o.health(); len(got) != 0 {
		t.Errorf("it tells of what is in order: %v", got)
	}
}
