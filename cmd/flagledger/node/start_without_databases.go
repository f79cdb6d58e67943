package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/postgres"
	"flagledger/projections/snapshot"
	"flagledger/retry"
)

// StartWithoutDatabase is Start while the database is down: flags are evaluated as the snapshot on disk has them, and
// changes are refused. Once the database is back it is brought to the newest schema, and all goes on as after Start.
//
// cause is the error of OpenDatabase. It is returned if the database is not down or is the private one, or if there is
// no snapshot on disk that can be used.
func StartWithoutDatabase(ctx context.Context, c Config, cause error, log *slog.Logger) (*Node, error) {
	if !errors.Is(cause, ErrUnreachable) || c.DatabaseURL == "" {
		return nil, cause
	}
	saved, err := snapshot.ReadSaved(ctx, c.snapshotFile())
	if err != nil {
		return nil, withSnapshotError(cause, err)
	}
	log.Warn("the start goes on without the database: flags are evaluated as the snapshot on disk has them", "err", cause)
	return start(ctx, c, c.DatabaseURL, saved, log)
}

const (
	// storeWait is how long a start waits for the event store where a snapshot on disk can be served instead.
	storeWait     = 3 * time.Second
	checkTimeout  = 10 * time.Second
	checkInterval = 30 * time.Second
)

// openStore opens the event store, also one that is down if there is a snapshot on disk. check, if not nil, is to be
// run beside: it tells of a store that a start would have refused.
func (p *parts) openStore(
	ctx context.Context, databaseURL string,
) (store events.Store, closeStore func(), check func(context.Context), err error) {
	file := p.snapshotFile()
	if _, statErr := os.Stat(file); p.Data == "" || statErr != nil {
		store, closeStore, err = OpenStore(ctx, p.Config, databaseURL, p.log)
		return store, closeStore, nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	store, closeStore, err = OpenStore(waiting, p.Config, databaseURL, p.log)
	if !errors.Is(err, events.ErrUnavailable) || ctx.Err() != nil {
		return store, closeStore, nil, err
	}
	if p.saved == nil {
		var unread error
		if p.saved, unread = snapshot.ReadSaved(ctx, file); unread != nil {
			return store, closeStore, nil, withSnapshotError(err, unread)
		}
	}
	p.log.Warn("the event store cannot be reached: the start goes on with the snapshot on disk", "err", err)
	if p.EventStoreURL == "" {
		s, err := postgres.New(databaseURL, p.log)
		if err != nil {
			return nil, nil, nil, err
		}
		return s, s.Close, nil, nil
	}
	s, err := eventstore.New(p.EventStoreURL, p.log)
	if err != nil {
		return nil, nil, nil, err
	}
	return s, s.Close, func(ctx context.Context) { p.logStoreErrors(ctx, s) }, nil
}

// withSnapshotError adds to the error that ends a start why the snapshot on disk cannot be served instead, where there
// is one.
func withSnapshotError(cause, unread error) error {
	if errors.Is(unread, fs.ErrNotExist) {
		return cause
	}
	return fmt.Errorf("%w; the snapshot on disk cannot be served instead: %w", cause, unread)
}

// logStoreErrors logs what is wrong with an event store that was down at the start, until nothing is.
func (p *parts) logStoreErrors(ctx context.Context, store *eventstore.Store) {
	for ctx.Err() == nil {
		err := within(ctx, checkTimeout, store.Check)
		if err == nil {
			return
		}
		wait := 2 * time.Second
		if !errors.Is(err, events.ErrUnavailable) {
			wait = checkInterval
			p.log.Error("FLAGLEDGER_EVENTSTORE_URL", "err", err)
		}
		_ = retry.Sleep(ctx, wait)
	}
}

// migrateLater brings a database that was down at the start to the newest schema.
func (p *parts) migrateLater(ctx context.Context, databaseURL string) {
	migrate := func(func()) error { return Migrate(ctx, databaseURL, p.log) }
	err := retry.Run(ctx, migrate, func(err error, wait time.Duration) {
		p.log.Warn("the database cannot be used yet", "retry_in", wait, "err", err)
	})
	if err != nil { // ctx has ended
		return
	}
	close(p.migrated)
	p.log.Info("the database has been reached")
}

// afterMigration has a part run only once the database is at the newest schema.
func (p *parts) afterMigration(run func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		select {
		case <-p.migrated:
			run(ctx)
		case <-ctx.Done():
		}
	}
}
