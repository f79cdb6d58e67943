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

// StartWithoutDatabase starts a node while the database is down: it evaluates flags from the snapshot on disk and
// refuses changes. Once the database is back, it is migrated, and the node works as after Start.
//
// cause is the error of OpenDatabase. It is returned if the database is not down or is the private one, or if there is
// no usable snapshot on disk.
func StartWithoutDatabase(ctx context.Context, c Config, cause error, log *slog.Logger) (*Node, error) {
	if !errors.Is(cause, ErrUnreachable) || c.DatabaseURL == "" {
		return nil, cause
	}
	saved, err := snapshot.ReadSaved(ctx, c.snapshotFile())
	if err != nil {
		return nil, withSnapshotError(cause, err)
	}
	log.Warn("starting without the database: flags are evaluated from the snapshot on disk", "err", cause)
	return start(ctx, c, c.DatabaseURL, saved, log)
}

const (
	// storeWait limits a start's wait for the event store if it can serve a snapshot on disk instead.
	storeWait     = 3 * time.Second
	checkTimeout  = 10 * time.Second
	checkInterval = 30 * time.Second
)

// openStore opens the event store; if there is a snapshot on disk, even one that is down. check, if not nil, must run
// in the background: it logs what a start would have refused.
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
	p.log.Warn("the event store cannot be reached: starting with the snapshot on disk", "err", err)
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

// withSnapshotError adds to the error of a start why the snapshot on disk cannot be served instead, if there is one.
func withSnapshotError(cause, unread error) error {
	if errors.Is(unread, fs.ErrNotExist) {
		return cause
	}
	return fmt.Errorf("%w; the snapshot on disk cannot be served instead: %w", cause, unread)
}

// logStoreErrors logs problems of an event store that was down at the start, until there are none.
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

// migrateLater migrates a database that was down at the start to the current schema.
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

// afterMigration delays a part until the database is migrated.
func (p *parts) afterMigration(run func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		select {
		case <-p.migrated:
			run(ctx)
		case <-ctx.Done():
		}
	}
}
