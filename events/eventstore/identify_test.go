package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"flagledger/events"
	"flagledger/events/eventstore/esdbtest"
)

// fill appends an event to each of many streams.
func fill(t *testing.T, s events.Store, streams int) {
	t.Helper()
	for i := range streams {
		mustAppend(t, s, fmt.Sprintf("project-%d", i), 0, events.Event{ID: uuid.New(), Fact: events.ProjectCreated{}})
	}
}

func identify(t *testing.T, s events.Store) events.Log {
	t.Helper()
	log, err := s.Log(t.Context())
	for errors.Is(err, events.ErrUnavailable) && t.Context().Err() == nil { // the server has just returned
		log, err = s.Log(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestALogIsReadOnceToIdentifyIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, 200)
	id := identify(t, s).ID
	before := s.server.Sent()
	for range 10 {
		if later := identify(t, s).ID; later != id {
			t.Fatalf("the log is identified as %s, and later as %s", id, later)
		}
	}
	if sent := s.server.Sent() - before; sent > 20 { // the first event, and the last
		t.Errorf("%d events were read to identify the log ten times", sent)
	}
}

func TestAnotherLogAtTheSameAddressIsToldApart(t *testing.T) {
	t.Parallel()
	server := esdbtest.New(t)
	s := connect(t, server.URL())
	fill(t, s, 3)
	first := identify(t, s)
	server.Stop()
	server.Empty()
	server.Start()
	if log := identify(t, s); log.ID != "" {
		t.Errorf("an empty log is identified as %+v", log)
	}
	fill(t, s, 3)
	if log := identify(t, s); log.ID == "" || log.ID == first.ID {
		t.Errorf("the log %+v is identified as %+v", first, log)
	}
}

// Foreign events may precede our first one, more than one search can read.
func TestASearchForTheFirstEventGoesOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.server.Inject("orders-1", "OrderPlaced", 80_000)
	fill(t, s, 1)
	const answer, patience = 100 * time.Millisecond, time.Second // 40 checkpoints come before the event
	s.server.SetDelay(answer)
	var log events.Log
	var err error
	found := esdbtest.WaitFor(2*time.Minute, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		log, err = s.Log(ctx)
		return err == nil
	})
	if !found || log.ID == "" {
		t.Errorf("the log is identified as %+v, %v", log, err)
	}
}

func TestWaitingForAnotherSearchEndsWithTheContext(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, 1)
	s.server.Freeze()
	defer s.server.Thaw()
	first, end := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Log(first)
	}()
	for range 20 { // the other search starts soon
		ctx, check := within(t, 50*time.Millisecond)
		if _, err := s.Log(ctx); !errors.Is(err, events.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		check("waiting")
	}
	end()
	<-ended
}
