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
		delivered := after
		for page, err := range s.Subscribe(ctx, events.Position{Commit: after, Prepare: after}) {
			for _, e := range page.Events {
				if delivered = e.Position.Commit; delivered > 1 {
					t.Errorf("position %v was delivered across the gap", e.Position)
				}
			}
			if last = err; page.Live {
				break
			}
		}
		cancel()
		if gap, ok := errors.AsType[*events.GapError](
			last,
		); !ok || gap.First != 2 || gap.Last != 2 || errors.Is(last, events.ErrUnavailable) ||
			!strings.Contains(last.Error(), "position 3 comes after 1") {
			t.Errorf("after position %d the subscription ends with %v, want a final error that names the gap", after, last)
		}
		if delivered != 1 {
			t.Errorf("after position %d: position %d is the last that was delivered, want 1", after, delivered)
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
