package eventstest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flagledger/events"
)

func testSlowCommit(t *testing.T, engine Engine) {
	if engine.Begin == nil {
		t.Skip("this engine has no slow commits: it assigns positions at commit")
	}
	s := engine.Open(t)
	slow := renamed("slow")
	commit := engine.Begin(t, s, "project-slow", slow)
	var appended sync.WaitGroup
	for i := range 8 {
		appended.Go(func() { mustAppend(t, s, fmt.Sprintf("project-%d", i), 0, renamed("fast")) })
	}
	seen := make(chan []events.Recorded)
	go func() {
		var list []events.Recorded
		for r := range subscribed(t, s, events.Position{}) {
			if list = append(list, r); len(list) == 9 {
				break
			}
		}
		seen <- list
	}()
	commit()
	appended.Wait()
	found := false
	last := events.Position{}
	for _, r := range <-seen {
		if r.Position.Compare(last) <= 0 {
			t.Errorf("position %v comes after %v", r.Position, last)
		}
		last = r.Position
		found = found || r.ID == slow.ID
	}
	if !found {
		t.Error("the subscriber missed the event that was committed late")
	}
}

func testResume(t *testing.T, engine Engine) {
	s := engine.Open(t)
	const n = 40
	positions := []events.Position{{}}
	for i := range n {
		positions = append(positions,
			mustAppend(t, s, fmt.Sprintf("project-%d", i%7), events.Revision(i/7), renamed(fmt.Sprint(i))))
	}
	for from, after := range positions[:n] {
		for r := range subscribed(t, s, after) {
			if r.Position != positions[from+1] {
				t.Errorf("after position %d the first event is at %v, want %v", from, r.Position, positions[from+1])
			}
			break
		}
	}
	for page, err := range s.Subscribe(t.Context(), positions[n]) {
		if err != nil || !page.Live || len(page.Events) > 0 || page.Next != positions[n] {
			t.Errorf("at the end of the log the first page is %+v, %v; want a live page without events", page, err)
		}
		break
	}
}

func testHandOver(t *testing.T, engine Engine) {
	s := engine.Open(t)
	const before, after = 700, 300
	write := func(stream string, n int) {
		for i := range n {
			mustAppend(t, s, stream, events.Revision(i), renamed(fmt.Sprint(i)))
		}
	}
	var backlog sync.WaitGroup
	for w := range 7 {
		backlog.Go(func() { write(fmt.Sprintf("project-a%d", w), before/7) })
	}
	backlog.Wait()
	var writing sync.WaitGroup
	for w := range 3 {
		writing.Go(func() { write(fmt.Sprintf("project-b%d", w), after/3) })
	}
	defer writing.Wait()
	verify(t, subscribed(t, s, events.Position{}), before+after)
}

func testManyWriters(t *testing.T, engine Engine) {
	s := engine.Open(t)
	const writers, each = 16, 60
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				mustAppend(t, s, fmt.Sprintf("project-%d", w), events.Revision(i), renamed(fmt.Sprint(i)))
			}
		})
	}
	defer writing.Wait()
	verify(t, subscribed(t, s, events.Position{}), writers*each)
}

func testDisruption(t *testing.T, engine Engine) {
	if engine.Disrupt == nil {
		t.Skip("the connections of this engine cannot be broken")
	}
	s := engine.Open(t)
	const writers, each = 8, 40
	var done atomic.Int32
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				e := renamed(fmt.Sprint(i))
				for {
					_, err := s.Append(t.Context(), fmt.Sprintf("project-%d", w), events.Revision(i), []events.Event{e})
					if err == nil {
						break
					}
					if !errors.Is(err, events.ErrUnavailable) {
						t.Errorf("append while connections break: %v, want ErrUnavailable", err)
						return
					}
				}
				done.Add(1)
			}
		})
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for cut := int32(0); cut < writers*each && t.Context().Err() == nil; {
			if n := done.Load(); n >= cut {
				engine.Disrupt(t, s)
				cut = n + writers*each/10
			}
		}
	}()
	verify(t, subscribed(t, s, events.Position{}), writers*each)
	writing.Wait()
	<-stop
}

func testForeignPosition(t *testing.T, engine Engine) {
	s := engine.Open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	for page, err := range s.Subscribe(t.Context(), events.Position{Commit: 1 << 40, Prepare: 1 << 40}) {
		if !errors.Is(err, events.ErrPastEnd) {
			t.Errorf("a position past the end gives %+v, %v; want ErrPastEnd", page, err)
		}
		return
	}
}

func testCancellation(t *testing.T, engine Engine) {
	s := engine.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Append(ctx, "project-1", 0, []events.Event{renamed("a")}); !errors.Is(err, context.Canceled) ||
		!errors.Is(err, events.ErrUnavailable) {
		t.Errorf("append: %v, want ErrUnavailable and context.Canceled", err)
	}
	for _, err := range s.Read(ctx, "project-1", 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("read: %v, want context.Canceled", err)
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	var last error
	for page, err := range s.Subscribe(ctx, events.Position{}) {
		if last = err; page.Live {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the subscription ends with %v, want context.Canceled", last)
	}
}

// verify reads n events and checks that each stream's events come in order, each once.
func verify(t *testing.T, all iter.Seq[events.Recorded], n int) {
	t.Helper()
	revisions := map[string]events.Revision{}
	last := events.Position{}
	seen := 0
	for r := range all {
		if r.Position.Compare(last) <= 0 {
			t.Fatalf("position %v comes after %v", r.Position, last)
		}
		if r.Revision != revisions[r.Stream]+1 {
			t.Fatalf("%s@%d comes after @%d", r.Stream, r.Revision, revisions[r.Stream])
		}
		last, revisions[r.Stream] = r.Position, r.Revision
		if seen++; seen == n {
			return
		}
	}
	t.Fatalf("the subscription ended after %d of %d events", seen, n)
}

// subscribed yields events one by one. It fails the test if the subscription takes longer than a few minutes.
func subscribed(t *testing.T, s events.Store, after events.Position) iter.Seq[events.Recorded] {
	return func(yield func(events.Recorded) bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		for page, err := range s.Subscribe(ctx, after) {
			if err != nil {
				t.Errorf("subscription: %v", err)
				return
			}
			for _, r := range page.Events {
				if r.Err != nil {
					t.Errorf("%s@%d: %v", r.Stream, r.Revision, r.Err)
				}
				if !yield(r) {
					return
				}
			}
		}
	}
}
