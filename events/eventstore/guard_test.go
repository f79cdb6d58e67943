package eventstore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/eventstore/esdbtest"
)

// searches is a log that notices when the client exceeds its default of ten attempts.
type searches struct{ long atomic.Bool }

func (s *searches) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("discovery attempt 11/")) {
		s.long.Store(true)
	}
	return len(line), nil
}

// A client without its server searches for it within each call and ignores contexts meanwhile. So callers must abandon
// it; its calls end when the server returns.
func TestCallersLeaveAClientThatHangs(t *testing.T) {
	server := esdbtest.New(t)
	log := &searches{}
	s, err := Open(t.Context(), server.URL(),
		slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	before := runtime.NumGoroutine()
	c, err := s.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	for !broken(err) && t.Context().Err() == nil { // then the client knows, and searches for a server
		_, err = c.client.AppendToStream(t.Context(), "project-1", esdb.AppendToStreamOptions{},
			esdb.EventData{EventType: "x"})
	}

	var calls sync.WaitGroup
	for name, f := range map[string]func(context.Context) error{
		"append": func(ctx context.Context) error {
			_, err := s.Append(ctx, "project-1", 0, []events.Event{{ID: uuid.New(), Fact: events.ProjectDeleted{}}})
			return err
		},
		"head": func(ctx context.Context) error {
			_, err := s.Head(ctx)
			return err
		},
		"read": func(ctx context.Context) (last error) {
			for _, last = range s.Read(ctx, "project-1", 0) {
				continue
			}
			return last
		},
		"subscription": func(ctx context.Context) (last error) {
			for _, last = range s.Subscribe(ctx, events.Position{}) {
				continue
			}
			return last
		},
	} {
		for range 3 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				began := time.Now()
				if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v, want the context's error", name, err)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("%s took %v; its context ended after 300 ms", name, took)
				}
			})
		}
	}
	calls.Wait()
	if !esdbtest.WaitFor(time.Minute, log.long.Load) {
		t.Error("the client does not look for a server for longer than it would by default")
	}
	server.Start()
	s.release(c, nil)
	if _, err := s.Head(t.Context()); err != nil {
		t.Error(err)
	}
	// the client leaks its broken connection with a few goroutines; each of the calls would be one more
	const left = 6
	after := 0
	gone := func() bool {
		after = runtime.NumGoroutine()
		return after <= before+left
	}
	if !esdbtest.WaitFor(time.Minute, gone) {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines once the server is back, %d before\n%s", after, before, buf[:runtime.Stack(buf, true)])
	}
}
