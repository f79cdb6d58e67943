package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/eventstore/esdbtest"
)

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
	for range 8 { // the first find the connection broken, and later ones find none
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

// By default the client gives up after ten attempts, one each 100 ms, and never recovers.
func TestOutageLongerThanTheClientsPatience(t *testing.T) {
	t.Parallel()
	s := open(t)
	pages := follow(t, s, events.Position{})
	s.server.Stop()
	e := renamed("a") // the server may get an attempt after it is back: only the same event can be appended then
	ctx, check := within(t, 2500*time.Millisecond)
	for ctx.Err() == nil {
		_, _ = s.Append(ctx, "project-1", 0, []events.Event{e})
	}
	check("append")
	s.server.Start()
	mustAppend(t, s, "project-1", 0, e)
	expect(t, pages, 1, 1)
}

// revive starts a server for the client of a closed store that may still search for it, and reports whether the client
// finds it and ends.
func revive(server *esdbtest.Server) bool {
	_, dialed := server.Connections()
	server.Start()
	if !esdbtest.WaitFor(time.Second, func() bool { _, ever := server.Connections(); return ever > dialed }) {
		return true // it is not searching
	}
	return esdbtest.WaitFor(time.Minute, func() bool { open, _ := server.Connections(); return open == 0 })
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
	if !revive(s.server) {
		t.Error("the client of a closed store does not let go of the server")
	}
}

func TestCloseDuringAnOutage(t *testing.T) {
	t.Parallel()
	kept := 0
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
		if !esdbtest.WaitFor(time.Minute, func() bool { return begun.Load() == callers }) {
			t.Error("not all callers have begun")
		}
		s.Close()
		calls.Wait()
		// A client that needs a connection just after its own broke leaves the broken one behind, which reconnects by itself:
		// about one in 500 closed stores.
		if revive(s.server) {
			continue
		}
		if kept++; kept > 2 {
			t.Fatalf("%d closed stores have not let go of their server", kept)
		}
	}
}

// With the race detector this test shows that the client's goroutines share nothing unguarded with a call that ends.
// About one in 100 rounds would show it.
func TestCallersGiveUpWhileTheServerStops(t *testing.T) {
	t.Parallel()
	batch := slices.Repeat([]events.Event{renamed("a")}, 40)
	for round := range 10 {
		s := open(t)
		time.AfterFunc(9*time.Millisecond+time.Duration(round%10)*100*time.Microsecond, s.server.Stop)
		var calls sync.WaitGroup
		for caller := range 24 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 8*time.Millisecond+time.Duration(caller)*time.Millisecond/8)
				defer cancel()
				for ctx.Err() == nil {
					if _, err := s.Append(ctx, "project-1", 0, batch); err != nil && !errors.Is(err, events.ErrUnavailable) &&
						!errors.Is(err, events.ErrConflict) {
						t.Errorf("append: %v, want ErrUnavailable, ErrConflict or none", err)
					}
				}
			})
		}
		calls.Wait()
		s.Close()
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
	// The client leaks a connection, three goroutines or more, if one breaks during its search, which is rare. A leak at
	// each reconnect would be sixty.
	settled := esdbtest.WaitFor(time.Minute, func() bool {
		connections, _ := s.server.Connections()
		return connections <= 2 && runtime.NumGoroutine() <= before+reconnects
	})
	if !settled {
		connections, _ := s.server.Connections()
		t.Errorf("%d goroutines and %d connections after %d reconnects, %d before", runtime.NumGoroutine(), connections,
			reconnects, before)
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
	// Calls that hang in the client end with the client, which is replaced.
	mustAppend(t, s, "project-2", 0, renamed("b"))
	if !esdbtest.WaitFor(time.Minute, func() bool { return runtime.NumGoroutine() <= before+20 }) {
		t.Errorf("%d goroutines after 1000 appends without a server, %d before", runtime.NumGoroutine(), before)
	}
}
