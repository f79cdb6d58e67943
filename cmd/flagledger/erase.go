package main

import (
	"context"
	"fmt"
	"log/slog"

	"flagledger/cmd/flagledger/node"
	"flagledger/events"
)

type eraseUserCommand struct {
	ID string `arg:"" help:"The person's id."`
}

// Run erases what is known of a person, also at Firebase. Facts, history and read models keep the id alone.
func (e eraseUserCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(c node.Config, databaseURL string, store events.Store, log *slog.Logger) error {
		if err := node.EraseUser(ctx, c, databaseURL, store, e.ID, log); err != nil {
			return err
		}
		fmt.Printf("The user %s is erased.\n", e.ID)
		return nil
	})
}
