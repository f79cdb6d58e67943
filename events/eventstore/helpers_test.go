package eventstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/eventstore/esdbtest"
)

// renamed returns an event.
func renamed(to string) events.Event {
	return events.Event{
		ID: uuid.Must(uuid.NewV7()),
		Metadata: events.Metadata{
			Time:  time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC),
			Actor: events.Actor{Kind: events.UserActor, ID: "u1"},
		},
		Fact: events.ProjectUpdated{Name: &events.Change[string]{To: to}},
	}
}

// within returns a context that ends soon, and a check that a call ends with it, much sooner than an absent server
// returns.
func within(t *testing.T, d time.Duration) (ctx context.Context, check func(what string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	began := time.Now()
	return ctx, func(what string) {
		t.Helper()
		if took := time.Since(began); took > d+time.Minute {
			t.Errorf("%s took %v; its context ended after %v", what, took, d)
		}
	}
}

// mustAppend appends, with retries until the outcome is known: after a fault, a busy machine may take long to connect.
func mustAppend(
	t *testing.T, s events.Store, stream string, expected events.Revision, list ...events.Event,
) (p events.Position) {
	t.Helper()
	var err error
	decided := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var appended events.Appended
		appended, err = s.Append(ctx, stream, expected, list)
		p = appended.Position
		return !errors.Is(err, events.ErrUnavailable)
	}
	esdbtest.WaitFor(time.Minute, decided)
	if err != nil {
		t.Errorf("append to %s at %d: %v", stream, expected, err)
	}
	return p
}

// read reads a stream, with retries until the store can be reached.
func read(t *testing.T, s events.Store, stream string) (list []events.Recorded) {
	t.Helper()
	var failed error
	decided := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		list, failed = nil, nil
		for r, err := range s.Read(ctx, stream, 0) {
			if failed = err; err == nil {
				list = append(list, r)
			}
		}
		return !errors.Is(failed, events.ErrUnavailable)
	}
	esdbtest.WaitFor(time.Minute, decided)
	if failed != nil {
		t.Fatalf("read: %v", failed)
	}
	return list
}

// follow subscribes and sends pages until the test ends.
func follow(t *testing.T, s events.Store, after events.Position) <-chan events.Page {
	t.Helper()
	pages := make(chan events.Page)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for page, err := range s.Subscribe(ctx, after) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("subscription: %v", err)
				}
				return
			}
			select {
			case pages <- page:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return pages
}

// expect reads pages up to n events, and checks that they are consecutive revisions of one stream, starting at first.
func expect(t *testing.T, pages <-chan events.Page, first events.Revision, n int) {
	t.Helper()
	for next := first; next < first+events.Revision(n); {
		select {
		case page := <-pages:
			for _, e := range page.Events {
				if e.Revision != next {
					t.Fatalf("revision %d came, want %d", e.Revision, next)
				}
				next++
			}
		case <-time.After(time.Minute):
			t.Fatalf("nothing came, want revision %d", next)
		}
	}
}

func live(t *testing.T, pages <-chan events.Page) events.Page {
	t.Helper()
	for {
		select {
		case page := <-pages:
			if page.Live {
				return page
			}
		case <-time.After(time.Minute):
			t.Fatal("the subscription does not turn live")
		}
	}
}
