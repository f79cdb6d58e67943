package node

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands/identity/local"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/tours"
	"flagledger/commands/people"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/queries"
)

// EraseUser erases a person here and at Firebase, if that is the identity provider. It is idempotent.
func EraseUser(
	ctx context.Context, c settings.Config, databaseURL string, store events.Store, userID string, log *slog.Logger,
) error {
	pool, err := OpenPool(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	w := writer.NewWriter(store, writer.NoWait, writer.NoQuotas{}, c.Now)
	queue, err := jobs.Open(pool)
	if err != nil {
		return err
	}
	links := jobs.NewLinks(queue)
	var outside account
	if c.Firebase.ProjectID != "" {
		if outside, err = openFirebase(ctx, c, links, nil, nil, log); err != nil {
			return err
		}
	}
	return newEraser(w, pool, links, directory.New(pool, c.Now), inbox.New(pool, queue, c.Now),
		queries.New(pool, store, writer.NoWait, nil), outside).Erase(ctx, userID)
}

// account deletes a person's account at an external identity provider.
type account interface {
	Delete(ctx context.Context, userID string) error
}

// newEraser returns the eraser for all keepings with personal data. The directory comes first: inboxes accept only
// people in it. outside is nil without an external identity provider.
func newEraser(
	w *writer.Writer, pool *pgxpool.Pool, links *jobs.Links, directory *directory.Directory, inbox *inbox.Inbox,
	queries *queries.Queries, outside account,
) *people.Eraser {
	return &people.Eraser{
		Writer: w, Tenants: queries, Contacts: directory, Keepings: []people.PersonalData{
			local.NewAccounts(pool), links, jobs.NewWindows(pool), directory, tours.New(pool), inbox,
		},
		Account: outside,
	}
}
