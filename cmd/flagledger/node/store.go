package node

import (
	"context"
	"fmt"
	"log/slog"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/postgres"
)

// OpenStore opens the configured event store: EventStoreDB if set, otherwise the database.
func OpenStore(
	ctx context.Context, c settings.Config, databaseURL string, log *slog.Logger,
) (store events.Store, closeStore func(), err error) {
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
