package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/events"
)

type eraseUserCommand struct {
	ID string `arg:"" help:"The person's id."`
}

// Run erases a person's data, also at Firebase. Facts, history and read models keep only the id.
func (e eraseUserCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(c settings.Config, databaseURL string, store events.Store, log *slog.Logger) error {
		id := e.ID
		err := node.EraseUser(ctx, c, databaseURL, store, id, log)
		// Firebase ids are case-sensitive, so only an unknown one is tried in lower case.
		if refusal, ok := errors.AsType[*commands.Error](err); ok && refusal.Kind == commands.NotFound &&
			events.CanonicalID(id) != id {
			id = events.CanonicalID(id)
			err = node.EraseUser(ctx, c, databaseURL, store, id, log)
		}
		if err != nil {
			return err
		}
		fmt.Printf("The user %s is erased.\n", id)
		return nil
	})
}
