package postgres

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"flagledger/events"
)

// read returns an event as a subscription reads it, with a value of n bytes.
func read(t *testing.T, id uuid.UUID, size int) events.Recorded {
	t.Helper()
	value, err := json.Marshal(strings.Repeat("v", size))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := events.Encode(events.Event{ID: id, Fact: events.FlagCreated{DefaultValue: value}})
	if err != nil {
		t.Fatal(err)
	}
	return events.Recorded{Stored: stored}
}

// valueOf returns the memory address of a decoded event's value.
func valueOf(t *testing.T, e events.Recorded) *byte {
	t.Helper()
	created, ok := e.Fact.(events.FlagCreated)
	if !ok || e.Err != nil || len(created.DefaultValue) == 0 {
		t.Fatalf("decoded: %T, %v", e.Fact, e.Err)
	}
	return &created.DefaultValue[0]
}

func TestSubscriptionsShareWhatTheyDecodeOfALargeEvent(t *testing.T) {
	t.Parallel()
	var r recent
	id := uuid.New()
	decoded := make([]events.Recorded, 8)
	var all sync.WaitGroup
	for i := range decoded {
		decoded[i] = read(t, id, largeEvent)
		all.Go(func() { r.decode(&decoded[i]) })
	}
	all.Wait()
	for _, e := range decoded[1:] {
		if valueOf(t, e) != valueOf(t, decoded[0]) {
			t.Error("it was decoded more than once")
		}
	}
	other := read(t, id, largeEvent+1)
	if r.decode(&other); len(other.Fact.(events.FlagCreated).DefaultValue) != largeEvent+1+len(`""`) {
		t.Error("another event of the same id is taken for it")
	}
}

func TestLargeEventsAreKeptUpToABound(t *testing.T) {
	t.Parallel()
	var r recent
	for range 100 {
		e := read(t, uuid.New(), 100_000)
		r.decode(&e)
		small := read(t, uuid.New(), 100)
		r.decode(&small)
		if r.bytes > recentBytes || r.bytes == 0 || len(r.byID) != len(r.order) || len(r.byID) > recentBytes/100_000 {
			t.Fatalf("%d bytes are kept, of %d and %d events", r.bytes, len(r.byID), len(r.order))
		}
	}
}
