package eventstore_test

import (
	"context"
	"log/slog"
	"testing"

	"flagledger/events"
	"flagledger/events/eventstest"
	"flagledger/events/eventstore"
	"flagledger/events/eventstore/esdbtest"
)

// testStore remembers the server of a store.
type testStore struct {
	*eventstore.Store
	server *esdbtest.Server
}

func open(t testing.TB) testStore {
	t.Helper()
	server := esdbtest.New(t)
	return testStore{connect(t, server.URL()), server}
}

func connect(t testing.TB, url string) *eventstore.Store {
	t.Helper()
	store, err := eventstore.Open(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func TestSuite(t *testing.T) {
	eventstest.Run(t, eventstest.Engine{
		Open:    func(t *testing.T) events.Store { return open(t) },
		Disrupt: func(_ *testing.T, s events.Store) { s.(testStore).server.Reset() },
	})
}

func openURL(ctx context.Context, url string) (*eventstore.Store, error) {
	return eventstore.Open(ctx, url, slog.New(slog.DiscardHandler))
}
