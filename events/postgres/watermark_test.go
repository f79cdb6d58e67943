package postgres_test

import (
	"context"
	"errors"
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
