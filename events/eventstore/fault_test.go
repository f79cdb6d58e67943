package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/eventstore/esdbtest"
)

// renamed is an event like any other.
func renamed(to string) events.Event {
	return events.Event{
		ID:       uuid.Must(uuid.NewV7()),
		Metadata: events.Metadata{Time: time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), Actor: events.Actor{Kind: events.UserActor, ID: "u1"}},
		Fact:     events.ProjectUpdated{Name: &events.Change[string]{To: to}},
	}
}

// within is a context that ends soon, and a check that a call ends with it: much sooner than a server that is away comes back.
func within(t *testing.T, d time.Duration) (ctx context.Context, check func(what string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	began := time.Now()
	return ctx, func(what string) {
		t.Helper()
		if took := time.Since(began); took > d+20*time.Second {
			t.Errorf("%s took %v; its context ended after %v", what, took, d)
		}
	}
}

// mustAppend appends, again and again until the store says whether it did: after a fault, a busy machine may take long to connect.
func mustAppend(t *testing.T, s events.Store, stream string, expected events.Revision, list ...events.Event) (p events.Position) {
	t.Helper()
	var err error
	decided := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		p, err = s.Append(ctx, stream, expected, list)
		return !errors.Is(err, events.ErrUnavailable)
	}
	esdbtest.HoldsIn(time.Minute, decided)
	if err != nil {
		t.Errorf("append to %s at %d: %v", stream, expected, err)
	}
	return p
}

// read reads a stream, again and again until the store can be reached.
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
	esdbtest.HoldsIn(time.Minute, decided)
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

// expect takes pages until they brought n events, and checks that these are revisions first and on of one stream.
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

func TestOutage(t *testing.T) {
	t.Parallel()
	s := open(t)
	first := renamed("first")
	mustAppend(t, s, "project-1", 0, first)
	pages := follow(t, s, events.Position{})
	expect(t, pages, 1, 1)

	s.server.Stop()
	second := renamed("second")
	var calls sync.WaitGroup
	for range 8 { // the first of them find the connection broken, and later ones none at all
		for _, d := range []time.Duration{200 * time.Millisecond, time.Second} {
			calls.Go(func() {
				ctx, check := within(t, d)
				for ctx.Err() == nil {
					_, err := s.Append(ctx, "project-1", 1, []events.Event{second})
					if !errors.Is(err, events.ErrUnavailable) {
						t.Errorf("append without a server: %v, want ErrUnavailable", err)
					}
				}
				check("append")
			})
		}
	}
	calls.Go(func() {
		ctx, check := within(t, time.Second)
		for _, err := range s.Read(ctx, "project-1", 0) {
			if !errors.Is(err, events.ErrUnavailable) {
				t.Errorf("read without a server: %v, want ErrUnavailable", err)
			}
		}
		check("read")
	})
	calls.Go(func() {
		ctx, check := within(t, time.Second)
		for ctx.Err() == nil {
			if _, err := s.Head(ctx); !errors.Is(err, events.ErrUnavailable) {
				t.Errorf("head without a server: %v, want ErrUnavailable", err)
			}
		}
		check("head")
	})
	calls.Wait()
	ctx, check := within(t, 300*time.Millisecond)
	for _, err := range s.Subscribe(ctx, events.Position{}) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("subscription without a server: %v", err)
		}
	}
	check("subscription")

	s.server.Start()
	mustAppend(t, s, "project-1", 1, second)
	mustAppend(t, s, "project-1", 2, renamed("third"))
	expect(t, pages, 2, 2)
	if got := read(t, s, "project-1"); len(got) != 3 || got[1].ID != second.ID {
		t.Errorf("the stream has %d events, want 3 and the second once", len(got))
	}
}

// The client gives up after ten attempts by default, one each 100 ms, and is dead from then on.
func TestOutageLongerThanTheClientsPatience(t *testing.T) {
	t.Parallel()
	s := open(t)
	pages := follow(t, s, events.Position{})
	s.server.Stop()
	ctx, check := within(t, 2500*time.Millisecond)
	for ctx.Err() == nil {
		_, _ = s.Append(ctx, "project-1", 0, []events.Event{renamed("a")})
	}
	check("append")
	s.server.Start()
	mustAppend(t, s, "project-1", 0, renamed("b"))
	expect(t, pages, 1, 1)
}

// revive starts a server for a client that may still be looking for it though its store is closed, and waits until it has found it and gone.
func revive(t *testing.T, server *esdbtest.Server) {
	t.Helper()
	_, dialed := server.Connections()
	server.Start()
	if !esdbtest.HoldsIn(time.Second, func() bool { _, ever := server.Connections(); return ever > dialed }) {
		return // it is not looking
	}
	if !esdbtest.HoldsIn(time.Minute, func() bool { open, _ := server.Connections(); return open == 0 }) {
		t.Error("the client of a closed store does not let go of the server")
	}
}

func TestOpenWithoutServer(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.server.Stop()
	ctx, check := within(t, 500*time.Millisecond)
	_, err := openURL(ctx, s.server.URL())
	if !errors.Is(err, events.ErrUnavailable) {
		t.Errorf("open: %v, want ErrUnavailable", err)
	}
	check("open")
	s.Close()
	revive(t, s.server)
}

func TestCloseDuringAnOutage(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := open(t)
		s.server.Stop()
		const callers = 16
		var begun atomic.Int32
		var calls sync.WaitGroup
		for range callers {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				begun.Add(1)
				for ctx.Err() == nil {
					if _, err := s.Append(ctx, "project-1", 0, []events.Event{renamed("a")}); !errors.Is(err, events.ErrUnavailable) {
						t.Errorf("append: %v, want ErrUnavailable", err)
					}
				}
			})
		}
		if !esdbtest.HoldsIn(time.Minute, func() bool { return begun.Load() == callers }) {
			t.Error("not all callers have begun")
		}
		s.Close()
		calls.Wait()
		revive(t, s.server)
	}
}

func TestResetInTheMiddleOfAnAppend(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprintf("applied %v", applied), func(t *testing.T) {
			t.Parallel()
			s := open(t)
			pages := follow(t, s, events.Position{})
			for i := range 10 {
				e := []events.Event{renamed("a"), renamed("b")}
				s.server.ResetAppends(1, applied)
				expected := events.Revision(2 * i)
				if _, err := s.Append(t.Context(), "project-1", expected, e); !errors.Is(err, events.ErrUnavailable) {
					t.Fatalf("append: %v, want ErrUnavailable", err)
				}
				if got := len(read(t, s, "project-1")); got != int(expected)+2 && applied || got != int(expected) && !applied {
					t.Fatalf("%d events stand after the reset, of %d", got, expected+2)
				}
				p := mustAppend(t, s, "project-1", expected, e...)
				if got := read(t, s, "project-1"); len(got) != int(expected)+2 || got[expected+1].Position != p {
					t.Fatalf("%d events stand after the repeated append, of %d", len(got), expected+2)
				}
			}
			expect(t, pages, 1, 20)
		})
	}
}

func TestSlowServer(t *testing.T) {
	t.Parallel()
	s := open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	pages := follow(t, s, events.Position{})
	expect(t, pages, 1, 1)
	s.server.SetDelay(5 * time.Second)
	e := renamed("b")
	ctx, check := within(t, time.Second)
	_, err := s.Append(ctx, "project-1", 1, []events.Event{e})
	if !errors.Is(err, events.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append: %v, want ErrUnavailable and the context's error", err)
	}
	check("append")
	ctx, check = within(t, time.Second)
	for _, err := range s.Read(ctx, "project-1", 0) {
		if !errors.Is(err, events.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("read: %v, want ErrUnavailable and the context's error", err)
		}
	}
	check("read")
	s.server.SetDelay(0)
	mustAppend(t, s, "project-1", 1, e) // it was applied
	mustAppend(t, s, "project-1", 2, renamed("c"))
	expect(t, pages, 2, 2)
}

func TestDroppedSubscriptionGoesOn(t *testing.T) {
	t.Parallel()
	s := open(t)
	pages := follow(t, s, events.Position{})
	live(t, pages)
	for i := range events.Revision(5) {
		mustAppend(t, s, "project-1", 2*i, renamed("a"))
		expect(t, pages, 2*i+1, 1)
		s.server.DropSubscriptions()
		mustAppend(t, s, "project-1", 2*i+1, renamed("b"))
		expect(t, pages, 2*i+2, 1)
	}
}

func TestReconnectsLeaveNothingBehind(t *testing.T) {
	s := open(t)
	pages := follow(t, s, events.Position{})
	live(t, pages)
	revision := events.Revision(0)
	reconnect := func() {
		s.server.Reset()
		var writing sync.WaitGroup
		for range 8 {
			writing.Go(func() {
				mustAppend(t, s, fmt.Sprintf("user-%s", uuid.NewString()), 0, renamed("a"))
			})
		}
		writing.Wait()
		mustAppend(t, s, "project-1", revision, renamed("a"))
		revision++
		for n := 0; n < 9; {
			n += len((<-pages).Events)
		}
	}
	reconnect()
	before := runtime.NumGoroutine()
	const reconnects = 20
	for range reconnects {
		reconnect()
	}
	// The client leaves a connection behind where one breaks while it is still looking, three goroutines and more; that is seldom. Were each of the
	// reconnects to leave one, it would be sixty.
	settled := esdbtest.HoldsIn(10*time.Second, func() bool {
		connections, _ := s.server.Connections()
		return connections <= 2 && runtime.NumGoroutine() <= before+reconnects
	})
	if !settled {
		connections, _ := s.server.Connections()
		t.Errorf("%d goroutines and %d connections after %d reconnects, %d before", runtime.NumGoroutine(), connections, reconnects, before)
	}
}

func TestUnavailableServerLeavesNothingBehind(t *testing.T) {
	s := open(t)
	mustAppend(t, s, "project-1", 0, renamed("a"))
	before := runtime.NumGoroutine()
	s.server.Stop()
	flood := func() {
		var calls sync.WaitGroup
		for range 200 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				_, _ = s.Append(ctx, "project-1", 1, []events.Event{renamed("b")})
			})
		}
		calls.Wait()
	}
	for range 5 {
		flood()
	}
	s.server.Start()
	// Calls that the client hangs in end with the client, which is replaced.
	mustAppend(t, s, "project-2", 0, renamed("b"))
	if !esdbtest.HoldsIn(20*time.Second, func() bool { return runtime.NumGoroutine() <= before+20 }) {
		t.Errorf("%d goroutines after 1000 appends without a server, %d before", runtime.NumGoroutine(), before)
	}
}
