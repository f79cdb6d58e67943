package postgres_test

import (
	"context"
	"errors"
	"fmt"
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

// A page ends where an append ends, so that a reader that applies pages never shows a part of one.
func TestPagesEndWhereAppendsEnd(t *testing.T) {
	t.Parallel()
	s := open(t)
	batch := func(n int) (list []events.Event) {
		for range n {
			list = append(list, deleted())
		}
		return list
	}
	sizes := map[string]int{}
	for i, n := range []int{300, 199, 3, 700, 2} { // a page has 500 events
		stream := fmt.Sprint("project-", i)
		sizes[stream] = n
		if _, err := s.Append(t.Context(), stream, 0, batch(n)); err != nil {
			t.Fatal(err)
		}
	}
	pages := 0
	for page, err := range s.Subscribe(t.Context(), events.Position{}) {
		if err != nil {
			t.Fatal(err)
		}
		pages++
		counts := map[string]int{}
		for _, e := range page.Events {
			counts[e.Stream]++
		}
		for stream, n := range counts {
			if n != sizes[stream] && sizes[stream] <= 500 {
				t.Errorf("page %d has %d of the %d events of %s", pages, n, sizes[stream], stream)
			}
		}
		if page.Live {
			break
		}
	}
	if pages < 4 {
		t.Errorf("there are %d pages", pages)
	}
}
