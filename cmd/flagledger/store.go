package main

import (
	"context"
	"fmt"
	"log/slog"

	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/postgres"
)

// openStore opens the event store that the settings choose: EventStoreDB where they name one, else the database.
func openStore(ctx context.Context, c config, databaseURL string, log *slog.Logger) (store events.Store, closeStore func(), err error) {
	if c.EventStoreURL != "" {
		s, err := eventstore.Open(ctx, c.EventStoreURL, log)
		if err != nil {
			return nil, nil, fmt.Errorf("FLAGLEDGER_EVENTSTORE_URL: %w", err)
		}
		return s, s.Close, nil
	}
	s, err := postgres.Open(ctx, databaseURL, log)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// withStore opens the event store, beside a running server or alone, for as long as use runs.
func withStore(ctx context.Context, use func(c config, databaseURL string, store events.Store, log *slog.Logger) error) error {
	return withDatabase(ctx, func(c config, databaseURL string, log *slog.Logger) error {
		store, closeStore, err := openStore(ctx, c, databaseURL, log)
		if err != nil {
			return err
		}
		defer closeStore()
		return use(c, databaseURL, store, log)
	})
}
