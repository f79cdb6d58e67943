package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"flagledger/cmd/flagledger/node"
	"flagledger/commands"
	"flagledger/events"
)

type eraseUserCommand struct {
	ID string `arg:"" help:"The person's id."`
}

// Run erases what is known of a person, also at Firebase. Facts, history and read models keep the id alone.
func (e eraseUserCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(c node.Config, databaseURL string, store events.Store, log *slog.Logger) error {
		id := e.ID
		err := node.EraseUser(ctx, c, databaseURL, store, id, log)
		// Firebase has ids in any case, so an unknown one is looked for in lower case only then.
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
