package eventstest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"flagledger/events"
)

func testRecorded(t *testing.T, engine Engine) {
	s := engine.Open(t)
	var returned []time.Time
	for i := range events.Revision(2) {
		// the event's own time is long past
		returned = append(returned, mustAppendAll(t, s, "project-1", i, renamed("a")).Recorded...)
	}
	batch := []events.Event{renamed("b"), renamed("c")}
	returned = append(returned, mustAppendAll(t, s, "project-1", 2, batch...).Recorded...)
	if repeated := mustAppendAll(
		t,
		s,
		"project-1",
		2,
		batch...); !slices.EqualFunc(repeated.Recorded, returned[2:], time.Time.Equal) {
		t.Errorf("a repeated append returns the times %v, want %v", repeated.Recorded, returned[2:])
	}
	list := collect(t, s.Read(t.Context(), "project-1", 0))
	if len(list) != len(returned) ||
		!slices.EqualFunc(
			list, returned, func(e events.Recorded, at time.Time) bool { return e.At.Equal(at) && at.Location() == time.UTC },
		) {
		t.Errorf("appends return the times %v, and reads %v", returned, list)
	}
	now, last, err := s.Clock(t.Context())
	if err != nil || time.Since(now).Abs() > time.Hour || now.Location() != time.UTC ||
		!last.Equal(returned[len(returned)-1]) {
		t.Errorf("the store's clock is %v, and its last event's time %v, want %v: %v", now, last,
			returned[len(returned)-1], err)
	}
	for _, e := range list {
		if e.At.Location() != time.UTC || !e.At.Equal(e.At.Truncate(time.Microsecond)) || time.Since(e.At).Abs() > time.Hour {
			t.Errorf("revision %d is recorded at %v: want the current time in UTC, in whole microseconds", e.Revision, e.At)
		}
	}
	n := 0
	for e := range subscribed(t, s, events.Position{}) {
		if !e.At.Equal(list[n].At) || !e.Stored.At.Equal(e.At) {
			t.Errorf("revision %d is recorded at %v, for a subscriber at %v, and in its stored form at %v", e.Revision,
				list[n].At, e.At, e.Stored.At)
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
	for _, recorded := range []time.Time{at, at.Add(time.Hour).In(time.FixedZone("", 3600)), {}, at.Add(time.Minute)} {
		e := renamed("a")
		stored := original.Stored
		stored.At = recorded
		e.Metadata, e.Fact = original.Metadata, stored
		batch = append(batch, e)
	}
	returned := mustAppendAll(t, to, "project-1", 0, batch...).Recorded
	repeated := mustAppendAll(t, to, "project-1", 0, batch...).Recorded
	mustAppend(t, to, "project-1", events.Revision(len(batch)), renamed("b"))
	list := collect(t, to.Read(t.Context(), "project-1", 0))
	for i := range batch {
		if !returned[i].Equal(list[i].At) || !repeated[i].Equal(list[i].At) || returned[i].Location() != time.UTC {
			t.Errorf("event %d is recorded at %v; its append returned %v, and repeated %v", i, list[i].At, returned[i],
				repeated[i])
		}
	}
	for i, want := range []time.Time{at, at.Add(time.Hour), {}, at.Add(time.Minute), {}} {
		e := list[i]
		if isNew := time.Since(e.At).
			Abs() <
			time.Hour; isNew != want.IsZero() || !isNew && !e.At.Equal(want) ||
			e.At.Location() != time.UTC {
			t.Errorf("event %d is recorded at %v, want %v, or now if that is zero", i, e.At, want)
		}
		if err := events.CheckMetadata(e); err != nil {
			t.Errorf("event %d is stored as %s: %v", i, e.Stored.Metadata, err)
		}
		if !e.Stored.At.Equal(e.At) || e.Time != original.Time || e.Reason != original.Reason {
			t.Errorf("event %d has time %v and reason %s, in its stored form it is recorded at %v", i, e.Time, e.Reason,
				e.Stored.At)
		}
	}
}

// A copied event with a future time would push the times of all later events into the future.
func testCopiesFromTheFuture(t *testing.T, engine Engine) {
	from, to := engine.Open(t), engine.Open(t)
	if _, last, err := to.Clock(t.Context()); err != nil || !last.IsZero() {
		t.Errorf("an empty store has a last event at %v: %v", last, err)
	}
	mustAppend(t, from, "project-1", 0, renamed("a"))
	stored := collect(t, from.Read(t.Context(), "project-1", 0))[0].Stored
	copied := func(ahead, accepted time.Duration) events.Event {
		e := renamed("a")
		s := stored
		s.At = time.Now().UTC().Truncate(time.Microsecond).Add(ahead)
		if accepted > 0 {
			s.AcceptUntil = time.Now().Add(accepted)
		}
		e.Fact = s
		return e
	}
	mustAppend(t, to, "project-1", 0, copied(-time.Hour, 0), copied(events.MaxAhead-time.Minute, 0))
	for _, e := range []events.Event{copied(events.MaxAhead+time.Minute, 0), copied(time.Hour, 59*time.Minute)} {
		if _, err := to.Append(t.Context(), "project-1", 2, []events.Event{renamed("b"), e}); !errors.Is(err,
			events.ErrAhead) {
			t.Errorf("a copy from the future: %v, want ErrAhead", err)
		}
	}
	mustAppend(t, to, "project-1", 2, copied(time.Hour, 2*time.Hour))
	mustAppend(t, to, "project-1", 3, renamed("b")) // the log's time is ahead, and appends still work
	if n := len(collect(t, to.Read(t.Context(), "project-1", 0))); n != 4 {
		t.Errorf("there are %d events, want 4", n)
	}
}
