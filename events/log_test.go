package events_test

import (
	"testing"

	"flagledger/events"
)

func TestACheckpointIsOfTheLogThatItWasTakenFrom(t *testing.T) {
	t.Parallel()
	log := events.Log{Engine: "postgres", ID: "a 1/1", End: events.Position{Commit: 7, Prepare: 7}}
	for _, test := range []struct {
		engine, id string
		commit     uint64
		want       bool
	}{
		{"postgres", "a 1/1", 0, true},
		{"postgres", "a 1/1", 7, true},
		{"postgres", "a 1/1", 8, false}, // the log was restored from an older copy
		{"postgres", "b 1/1", 7, false},
		{"eventstore", "a 1/1", 7, false},
		{"postgres", "", 7, true},
		{"postgres", "", 8, false},
	} {
		c := events.LogPosition{
			Engine:   test.engine,
			LogID:    test.id,
			Position: events.Position{Commit: test.commit, Prepare: test.commit},
		}
		if got, err := log.Holds(t.Context(), nil, c); got != test.want || err != nil {
			t.Errorf("%+v: %v, %v, want %v", c, got, err, test.want)
		}
	}
	empty := events.Log{Engine: "postgres"}
	if held, err := empty.Holds(t.Context(), nil, events.LogPosition{Engine: "postgres", LogID: "a 1/1"}); held ||
		err != nil {
		t.Errorf("a log without events is taken for one that had some, %v", err)
	}
}
