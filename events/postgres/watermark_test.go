package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
)

// An append under way may have been recorded before the watermark, and cannot be read yet.
func TestAWatermarkWaitsForAppendsUnderWay(t *testing.T) {
	s := open(t)
	commit := begin(t, s, "project-slow", events.Event{ID: uuid.New(), Fact: events.ProjectDeleted{}})
	early, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if mark, err := s.Watermark(early); !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("while an append is under way the watermark is %v: %v", mark, err)
	}
	commit()
	mark, err := s.Watermark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Read(t.Context(), "project-slow", 0) {
		if err != nil || e.At.After(mark) {
			t.Errorf("an event is recorded at %v, after the watermark %v: %v", e.At, mark, err)
		}
	}
}

// While appends and watermarks come at once, all that is recorded before a watermark is in the log by then.
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
		passed, err := s.Watermark(t.Context())
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
		if err := conn.QueryRow(t.Context(), "select count(*) from events.event where recorded < $1 and position > $2", m.passed, m.head.Commit).Scan(&added); err != nil || added > 0 {
			t.Fatalf("%d events were recorded before the watermark %v and came after it: %v", added, m.passed, err)
		}
	}
	t.Logf("%d watermarks", len(marks))
}
