package evaluation

import (
	"testing"
	"time"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
)

func TestRevisionOfChangesAtOneTimeIsAmbiguous(t *testing.T) {
	t.Parallel()
	before := time.Date(2026, 3, 14, 15, 9, 26, 535000000, time.UTC)
	newest := before.Add(time.Microsecond)
	segment := func(key string, at time.Time) *evaluation.Segment {
		s, err := evaluation.CompileSegment(&state.Segment{
			SegmentCreated: events.SegmentCreated{Key: key}, UpdatedAt: at,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	required := func(key string, at time.Time) *evaluation.Flag {
		return evaluation.Deleted(&state.Flag{FlagCreated: events.FlagCreated{Key: key}, UpdatedAt: at})
	}
	for name, test := range map[string]struct {
		newest, flag, environment time.Time
		segments                  []*evaluation.Segment
		required                  []*evaluation.Flag
		want                      bool
	}{
		"of the version alone":       {time.Time{}, newest, newest, nil, nil, false},
		"a segment":                  {newest, before, before, []*evaluation.Segment{segment("s", newest)}, nil, false},
		"the flag in a cycle":        {newest, newest, before, nil, []*evaluation.Flag{required("k", newest)}, false},
		"the flag and the other one": {newest, newest, before, nil, []*evaluation.Flag{required("other", newest)}, true},
		"two segments": {newest, before, before,
			[]*evaluation.Segment{segment("a", newest), segment("b", newest)}, nil, true},
		"a flag and a segment": {newest, before, before, []*evaluation.Segment{segment("s", newest)},
			[]*evaluation.Flag{required("other", newest)}, true},
		"the environment and a segment": {newest, before, newest, []*evaluation.Segment{segment("s", newest)}, nil, true},
	} {
		f := state.Flag{FlagCreated: events.FlagCreated{Key: "k"}, UpdatedAt: test.flag}
		dependencies := evaluation.NewDependencies(evaluation.NewSegments(test.segments), test.required...)
		r := revision{version: 7, newest: test.newest}
		if got := r.ambiguous(&f, &state.Environment{AddedAt: test.environment}, dependencies); got != test.want {
			t.Errorf("%s: ambiguous is %v", name, got)
		}
	}
}
