package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/directory"
	"flagledger/events"
	"flagledger/queries"
)

type eraseUserCommand struct {
	ID string `arg:"" help:"The person's id."`
}

// Run erases what is known of a person; facts, history and read models keep his id alone.
func (e eraseUserCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(_ config, databaseURL string, store events.Store, _ *slog.Logger) error {
		if err := eraseUser(ctx, databaseURL, store, e.ID); err != nil {
			return err
		}
		fmt.Printf("The user %s is erased.\n", e.ID)
		return nil
	})
}

// eraseUser shuts a person out and then erases what the directory knows of him. It may be repeated.
func eraseUser(ctx context.Context, databaseURL string, store events.Store, userID string) error {
	pool, err := openPool(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	w := &commands.Writer{Store: store, Await: func(context.Context, events.Position) bool { return true }}
	by := commands.By{Actor: events.Actor{Kind: events.SystemActor, ID: "flagledger"}, RequestID: uuid.NewString()}
	if _, _, err := commands.Do(ctx, w, by, commands.EraseUser{UserRef: commands.UserRef{UserID: userID}}); err != nil {
		return err
	}
	created, err := queries.New(pool, nil).CreatedBy(ctx, userID)
	if err != nil {
		return err
	}
	return directory.New(pool).Erase(ctx, userID, created)
}
