package eventstore_test

import (
	"errors"
	"fmt"
	"testing"

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
	for errors.Is(err, events.ErrUnavailable) && t.Context().Err() == nil { // the server has just come back
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
