package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"flagledger/events"
)

// A lost row must stop every subscriber, also one that reads its first page.
func TestAGapInTheLogIsAnError(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, stream := range []string{"project-1", "project-2", "project-3"} {
		if _, err := s.Append(t.Context(), stream, 0, []events.Event{deleted()}); err != nil {
			t.Fatal(err)
		}
	}
	s.exec(t, "alter table events.event disable trigger never_changed; delete from events.event where position = 2")
	for _, after := range []uint64{0, 1} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var last error
		for page, err := range s.Subscribe(ctx, events.Position{Commit: after, Prepare: after}) {
			for _, e := range page.Events {
				if e.Position.Commit > 1 {
					t.Errorf("position %v was delivered across the gap", e.Position)
				}
			}
			if last = err; page.Live {
				break
			}
		}
		cancel()
		if last == nil || !strings.Contains(last.Error(), "gap") || errors.Is(last, events.ErrUnavailable) {
			t.Errorf("after position %d the subscription ends with %v, want a final error that names the gap", after, last)
		}
	}
}

func TestAnAppendIsNotified(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.SetPollInterval(time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	live := make(chan struct{})
	appended := make(chan error, 1)
	go func() {
		<-live
		_, err := s.Append(ctx, "project-1", 0, []events.Event{deleted()})
		appended <- err
	}()
	seen := 0
	for page, err := range s.Subscribe(ctx, events.Position{}) {
		if err != nil {
			t.Errorf("the event did not come: %v", err)
			break
		}
		if seen += len(page.Events); seen > 0 {
			break
		}
		if page.Live {
			close(live)
		}
	}
	if err := <-appended; err != nil {
		t.Error(err)
	}
}
