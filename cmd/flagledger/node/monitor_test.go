package node

import (
	"strings"
	"testing"

	"flagledger/projections"
	"flagledger/projections/snapshot"
)

// Anyone may ask for the health.
func TestHealthTellsHowManyStreamsAreParkedNotWhich(t *testing.T) {
	m := newMonitor(nil, nil, snapshot.New())
	m.current.Store(&observation{statuses: []projections.Status{{Name: "history", Built: true, Parked: []projections.Parked{{Stream: "flag-t.secret-plan"}, {Stream: "user-u"}}}}})
	if got := strings.Join(m.health(), "; "); got != "the read model history has parked 2 streams" {
		t.Errorf("it tells: %s", got)
	}
}
