package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"flagledger/cmd/flagledger/node/settings"
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
func StartWithoutDatabase(ctx context.Context, c settings.Config, cause error, log *slog.Logger) (*Node, error) {
	if !errors.Is(cause, ErrUnreachable) || c.DatabaseURL == "" {
		return nil, cause
	}
	saved, err := snapshot.ReadSaved(ctx, c.SnapshotFile())
	if err != nil {
		return nil, withSnapshotError(cause, err)
	}
	log.Warn("starting without the database: flags are evaluated from the snapshot on disk", "err", cause)
	return start(ctx, c, c.DatabaseURL, make(chan struct{}), saved, log)
}

const (
	// storeWait limits a start's wait for the event store if it can serve a snapshot on disk instead.
	storeWait     = 3 * time.Second
	checkTimeout  = 10 * time.Second
	checkInterval = 30 * time.Second
)

// facts is an opened event store.
type facts struct {
	store events.Store
	close func()
	check func(context.Context) // runs in the background: it logs what a start would have refused
	saved *snapshot.Saved       // the snapshot on disk, if it has been read
}

// openEventStore opens the event store; if there is a snapshot on disk, even one that is down.
func openEventStore(
	ctx context.Context, c settings.Config, databaseURL string, saved *snapshot.Saved, log *slog.Logger,
) (facts, error) {
	file, waiting := c.SnapshotFile(), ctx
	_, err := os.Stat(file)
	onDisk := file != "" && err == nil
	if onDisk {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, storeWait)
		defer cancel()
	}
	store, closeStore, err := OpenStore(waiting, c, databaseURL, log)
	if !onDisk || !errors.Is(err, events.ErrUnavailable) || ctx.Err() != nil {
		return facts{store, closeStore, func(context.Context) {}, saved}, err
	}
	if saved == nil {
		var unread error
		if saved, unread = snapshot.ReadSaved(ctx, file); unread != nil {
			return facts{}, withSnapshotError(err, unread)
		}
	}
	log.Warn("the event store cannot be reached: starting with the snapshot on disk", "err", err)
	if c.EventStoreURL == "" {
		s, err := postgres.New(databaseURL, log)
		if err != nil {
			return facts{}, err
		}
		return facts{s, s.Close, func(context.Context) {}, saved}, nil
	}
	s, err := eventstore.New(c.EventStoreURL, log)
	if err != nil {
		return facts{}, err
	}
	return facts{s, s.Close, func(ctx context.Context) { logStoreErrors(ctx, s, log) }, saved}, nil
}

// withSnapshotError adds to the error of a start why the snapshot on disk cannot be served instead, if there is one.
func withSnapshotError(cause, unread error) error {
	if errors.Is(unread, fs.ErrNotExist) {
		return cause
	}
	return fmt.Errorf("%w; the snapshot on disk cannot be served instead: %w", cause, unread)
}

// logStoreErrors logs problems of an event store that was down at the start, until there are none.
func logStoreErrors(ctx context.Context, store *eventstore.Store, log *slog.Logger) {
	for ctx.Err() == nil {
		checking, cancel := context.WithTimeout(ctx, checkTimeout)
		err := store.Check(checking)
		cancel()
		if err == nil {
			return
		}
		wait := 2 * time.Second
		if !errors.Is(err, events.ErrUnavailable) {
			wait = checkInterval
			log.Error("FLAGLEDGER_EVENTSTORE_URL", "err", err)
		}
		_ = retry.Sleep(ctx, wait)
	}
}

// migrateLater migrates a database that was down at the start to the current schema, and closes migrated.
func migrateLater(ctx context.Context, databaseURL string, migrated chan struct{}, log *slog.Logger) {
	if isClosed(migrated) {
		return
	}
	migrate := func(func()) error { return Migrate(ctx, databaseURL, log) }
	err := retry.Run(ctx, migrate, func(err error, wait time.Duration) {
		log.Warn("the database cannot be used yet", "retry_in", wait, "err", err)
	})
	if err != nil { // ctx has ended
		return
	}
	close(migrated)
	log.Info("the database has been reached")
}
