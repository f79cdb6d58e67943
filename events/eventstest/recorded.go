package eventstest

import (
	"testing"
	"time"

	"flagledger/events"
)

func testRecorded(t *testing.T, engine Engine) {
	s := engine.Open(t)
	for i := range events.Revision(3) {
		mustAppend(t, s, "project-1", i, renamed("a")) // whose own time is long past
	}
	list := collect(t, s.Read(t.Context(), "project-1", 0))
	for _, e := range list {
		if e.At.Location() != time.UTC || !e.At.Equal(e.At.Truncate(time.Microsecond)) || time.Since(e.At).Abs() > time.Hour {
			t.Errorf("revision %d is recorded at %v: want the time of now in UTC, in whole microseconds", e.Revision, e.At)
		}
	}
	n := 0
	for e := range subscribed(t, s, events.Position{}) {
		if !e.At.Equal(list[n].At) || !e.Stored.At.Equal(e.At) {
			t.Errorf("revision %d is recorded at %v, and for a subscriber at %v, in its stored form at %v", e.Revision, list[n].At, e.At, e.Stored.At)
		}
		if n++; n == len(list) {
			break
		}
	}
}

func testCopies(t *testing.T, engine Engine) {
	from, to := engine.Open(t), engine.Open(t)
	mustAppend(t, from, "project-1", 0, renamed("a"))
	original := collect(t, from.Read(t.Context(), "project-1", 0))[0]
	at := time.Date(2025, 2, 3, 4, 5, 6, 123_456_000, time.UTC)
	var batch []events.Event
	for _, recorded := range []time.Time{at, at.Add(time.Hour), {}, at.Add(time.Minute)} {
		e := renamed("a")
		stored := original.Stored
		stored.At = recorded
		e.Metadata, e.Fact = original.Metadata, stored
		batch = append(batch, e)
	}
	mustAppend(t, to, "project-1", 0, batch...)
	mustAppend(t, to, "project-1", events.Revision(len(batch)), renamed("b"))
	list := collect(t, to.Read(t.Context(), "project-1", 0))
	for i, want := range []time.Time{at, at.Add(time.Hour), {}, at.Add(time.Minute), {}} {
		e := list[i]
		if isNew := time.Since(e.At).Abs() < time.Hour; isNew != want.IsZero() || !isNew && !e.At.Equal(want) || e.At.Location() != time.UTC {
			t.Errorf("event %d is recorded at %v, want %v, or now where that is zero", i, e.At, want)
		}
		if err := events.CheckMetadata(e); err != nil {
			t.Errorf("event %d is stored as %s: %v", i, e.Stored.Metadata, err)
		}
		if !e.Stored.At.Equal(e.At) || e.Time != original.Time || e.Reason != original.Reason {
			t.Errorf("event %d has time %v and reason %s, in its stored form it is recorded at %v", i, e.Time, e.Reason, e.Stored.At)
		}
	}
}
