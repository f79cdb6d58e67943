package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/identity/firebase"
	"flagledger/commands/identity/local"
	"flagledger/commands/keep/directory"
	"flagledger/events"
	"flagledger/queries"
)

type eraseUserCommand struct {
	ID string `arg:"" help:"The person's id."`
}

// Run erases what is known of a person, their account at Firebase included; facts, history and read models keep the id alone.
func (e eraseUserCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(c config, databaseURL string, store events.Store, log *slog.Logger) error {
		if err := eraseUser(ctx, c, databaseURL, store, e.ID, log); err != nil {
			return err
		}
		fmt.Printf("The user %s is erased.\n", e.ID)
		return nil
	})
}

// eraseUser erases a person here and at Firebase, where that is the identity provider. It may be repeated.
func eraseUser(ctx context.Context, c config, databaseURL string, store events.Store, userID string, log *slog.Logger) error {
	pool, err := openPool(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	w := &commands.Writer{Store: store, Await: func(context.Context, events.Position, []string) bool { return true }}
	eraser := newEraser(w, pool, directory.New(pool), queries.New(pool, nil))
	if c.Firebase.ProjectID != "" {
		if eraser.Account, err = openFirebase(ctx, c, firebase.Options{Log: log}); err != nil {
			return err
		}
	}
	return eraser.Erase(ctx, userID)
}

// newEraser erases people from all keepings that hold something of them.
func newEraser(w *commands.Writer, pool *pgxpool.Pool, people *directory.Directory, reads *queries.Queries) *commands.Eraser {
	return &commands.Eraser{
		Writer: w, Tenants: reads, Contacts: people, Keepings: []commands.PersonalData{local.NewAccounts(pool), people},
	}
}
