package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"flagledger/commands"
	"flagledger/commands/identity/firebase"
	"flagledger/commands/keep/directory"
	"flagledger/events"
	"flagledger/queries"
)

type eraseUserCommand struct {
	ID string `arg:"" help:"The person's id."`
}

// Run erases what is known of a person, his account at Firebase included; facts, history and read models keep his id alone.
func (e eraseUserCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(c config, databaseURL string, store events.Store, log *slog.Logger) error {
		if err := eraseUser(ctx, c, databaseURL, store, e.ID, log); err != nil {
			return err
		}
		fmt.Printf("The user %s is erased.\n", e.ID)
		return nil
	})
}

// eraseUser erases a person here and then his account at Firebase, where that is the identity provider. It may be repeated.
func eraseUser(ctx context.Context, c config, databaseURL string, store events.Store, userID string, log *slog.Logger) error {
	pool, err := openPool(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	w := &commands.Writer{Store: store, Await: func(context.Context, events.Position, []string) bool { return true }}
	if err := erasing(w, directory.New(pool), queries.New(pool, nil))(ctx, userID); err != nil {
		return err
	}
	if c.Firebase.ProjectID == "" {
		return nil
	}
	p, err := openFirebase(ctx, c, firebase.Options{Log: log})
	if err != nil {
		return err
	}
	if err := p.Delete(ctx, userID); err != nil {
		return fmt.Errorf("the user is erased here, but not at Firebase: %w", err)
	}
	return nil
}

// erasing shuts people out and then erases what the directory knows of them. It may be repeated for each. The error is of the kind NotFound for
// somebody of whom nothing is known.
func erasing(w *commands.Writer, people *directory.Directory, reads *queries.Queries) func(ctx context.Context, userID string) error {
	return func(ctx context.Context, userID string) error {
		known, err := people.Knows(ctx, userID)
		if err != nil {
			return err
		}
		by := commands.By{Actor: events.Actor{Kind: events.SystemActor, ID: "flagledger"}, RequestID: uuid.NewString()}
		if _, _, err := commands.Do(ctx, w, by, commands.EraseUser{UserRef: commands.UserRef{UserID: userID}, Known: known}); err != nil {
			return err
		}
		created, err := reads.CreatedBy(ctx, userID)
		if err != nil {
			return err
		}
		return people.Erase(ctx, userID, created)
	}
}
