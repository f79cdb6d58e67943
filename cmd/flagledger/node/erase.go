package node

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/commands"
	"flagledger/commands/identity/firebase"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/tours"
	"flagledger/events"
	"flagledger/queries"
)

// EraseUser erases a person here and at Firebase, if that is the identity provider. It is idempotent.
func EraseUser(
	ctx context.Context, c Config, databaseURL string, store events.Store, userID string, log *slog.Logger,
) error {
	pool, err := OpenPool(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	w := commands.NewWriter(store, commands.NoWait, commands.NoQuotas{}, c.Now)
	queue, err := jobs.Open(pool)
	if err != nil {
		return err
	}
	eraser := newEraser(w, pool, jobs.NewLinks(queue), directory.New(pool, c.Now), inbox.New(pool, queue, c.Now),
		queries.New(pool, store, commands.NoWait))
	if c.Firebase.ProjectID != "" {
		if eraser.Account, err = openFirebase(ctx, c, firebase.Options{Log: log}); err != nil {
			return err
		}
	}
	return eraser.Erase(ctx, userID)
}

// newEraser returns the eraser for all keepings with personal data. The directory comes first: inboxes accept only
// people in it.
func newEraser(
	w *commands.Writer, pool *pgxpool.Pool, links *jobs.Links, directory *directory.Directory, inbox *inbox.Inbox,
	queries *queries.Queries,
) *commands.Eraser {
	return &commands.Eraser{
		Writer: w, Tenants: queries, Contacts: directory, Keepings: []commands.PersonalData{
			local.NewAccounts(pool), links, jobs.NewMailLimit(pool), directory, tours.New(pool), inbox,
		},
	}
}
