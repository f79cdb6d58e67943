package eventstest

import (
	"testing"
	"time"

	"flagledger/events"
)

func testWatermark(t *testing.T, engine Engine) {
	s := engine.Open(t)
	var marks []time.Time
	for i := range events.Revision(3) {
		mustAppend(t, s, "project-1", i, renamed("a"))
		mark, err := s.Watermark(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if mark.Location() != time.UTC || !mark.Equal(mark.Truncate(time.Microsecond)) {
			t.Errorf("the watermark is %v, want UTC in whole microseconds", mark)
		}
		marks = append(marks, mark)
	}
	for i, e := range collect(t, s.Read(t.Context(), "project-1", 0)) {
		if e.At.After(marks[i]) || i > 0 && e.At.Before(marks[i-1]) {
			t.Errorf("event %d is recorded at %v, between the watermarks %v", i, e.At, marks)
		}
	}
}
