package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"flagledger/events"
)

// Events of a pending append may have times before the watermark, although they cannot be read yet.
func TestAWatermarkWaitsForAppendsUnderWay(t *testing.T) {
	s := open(t)
	commit := begin(t, s, "project-slow", deleted())
	early, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if mark, err := s.Watermark(early, time.Now()); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("while an append is under way the watermark is %v: %v", mark, err)
	}
	commit()
	mark, err := s.Watermark(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Read(t.Context(), "project-slow", 0) {
		if err != nil || e.At.After(mark) {
			t.Errorf("an event is recorded at %v, after the watermark %v: %v", e.At, mark, err)
		}
	}
}

// During concurrent appends and watermarks, every event with a time before a watermark is in the log by then.
func TestNothingIsAddedBeforeAWatermark(t *testing.T) {
	s := open(t)
	var writing sync.WaitGroup
	for writer := range 8 {
		writing.Go(func() {
			for i := range events.Revision(100) {
				if _, err := s.Append(t.Context(), fmt.Sprintf("project-%d", writer), i, []events.Event{deleted()}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	type mark struct {
		passed time.Time
		head   events.Position
	}
	var marks []mark
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		passed, err := s.Watermark(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		head, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, mark{passed, head})
	}
	conn := connect(t, s.url)
	for _, m := range marks {
		var added int
		if err := conn.QueryRow(t.Context(), "select count(*) from events.event where recorded < $1 and position > $2", m.passed, m.head.Commit).
			Scan(&added); err != nil ||
			added > 0 {
			t.Fatalf("%d events were recorded before the watermark %v and came after it: %v", added, m.passed, err)
		}
	}
	t.Logf("%d watermarks", len(marks))
}

// Times up to the last event's need no read of the clock, which a pending append would delay.
func TestAnEventsTimeIsPastOnceItIsRead(t *testing.T) {
	s := open(t)
	if _, err := s.Append(t.Context(), "project-1", 0, []events.Event{deleted()}); err != nil {
		t.Fatal(err)
	}
	commit := begin(t, s, "project-slow", deleted())
	defer commit()
	for e, err := range s.Read(t.Context(), "project-1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if mark, err := s.Watermark(ctx, e.At); err != nil || !e.At.Before(mark) {
			t.Errorf("an event is recorded at %v, and the watermark is %v: %v", e.At, mark, err)
		}
	}
}

// However many callers wait, one connection waits for the pending append.
func TestOneLooksAtTheClock(t *testing.T) {
	s := open(t)
	commit := begin(t, s, "project-slow", deleted())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const askers = 20
	before, _ := s.ReadConnections()
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			if _, err := s.Watermark(ctx, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	// each takes a connection to read the head, and one of them another, to wait
	for ctx.Err() == nil {
		if ever, waiting := s.ReadConnections(); ever-before > askers && waiting == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	commit()
	asking.Wait()
	ever, _ := s.ReadConnections()
	if looks := ever - before - askers; looks > 2 { // the second for callers that had read the head before the first
		t.Errorf("%d looks at the clock, want one for all", looks)
	}
}

// If the clock was set back, events get the last event's time or a later one.
func TestAWatermarkHoldsWhereTheClockIsBehindTheLog(t *testing.T) {
	s := open(t)
	if _, err := connect(
		t, s.url,
	).Exec(t.Context(), "update events.head set recorded = clock_timestamp() + interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	var passed time.Time
	for i := range events.Revision(3) {
		if _, err := s.Append(t.Context(), "project-1", i, []events.Event{deleted()}); err != nil {
			t.Fatal(err)
		}
		for e, err := range s.Read(t.Context(), "project-1", i+1) {
			if err != nil {
				t.Fatal(err)
			}
			if e.At.Before(passed) {
				t.Errorf("revision %d is recorded at %v, before the watermark %v", i+1, e.At, passed)
			}
			if passed, err = s.Watermark(t.Context(), e.At); err != nil || !e.At.Before(passed) {
				t.Errorf("revision %d is recorded at %v, and the watermark is %v: %v", i+1, e.At, passed, err)
			}
		}
	}
}
