// Package node is one running node of the service: it wires all parts.
package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/http"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/snapshot"
)

// Node is a running service without its listener.
type Node struct {
	API   *http.API
	Ready <-chan struct{} // closed once flags are evaluated
	Stop  func()          // ends all parts and waits for them; idempotent
}

// Start wires all parts over a migrated database, and runs them until Stop.
func Start(ctx context.Context, c settings.Config, databaseURL string, log *slog.Logger) (*Node, error) {
	migrated := make(chan struct{})
	close(migrated)
	return start(ctx, c, databaseURL, migrated, nil, log)
}

// start implements Start and StartWithoutDatabase. saved is the snapshot read from disk, or nil. Parts that need the
// database wait until migrated is closed.
func start(
	ctx context.Context, c settings.Config, databaseURL string, migrated chan struct{}, saved *snapshot.Saved,
	log *slog.Logger,
) (*Node, error) {
	c, err := withDataFolder(c.WithDefaults(), log)
	if err != nil {
		return nil, err
	}
	s, saved, err := openStores(ctx, c, databaseURL, migrated, saved, log)
	if err != nil {
		return nil, err
	}
	r := newReadSide(c, s, saved)
	w, err := newWriteSide(ctx, c, s, r, log)
	if err != nil {
		s.close()
		return nil, err
	}
	h := newHTTPSide(c, s, r, w, log)
	jobs := work(c, s, r, w, log)
	stop := runAll(ctx,
		func(ctx context.Context) { r.snapshot.Run(ctx, s.events, r.progress.SnapshotReached, log) },
		s.afterMigration(func(ctx context.Context) {
			if err := projections.Run(ctx, databaseURL, s.events, models.All(), r.progress, log); err != nil &&
				ctx.Err() == nil {
				log.Error("projections ended", "err", err)
			}
		}),
		func(ctx context.Context) { s.directory.Run(ctx, c.FlushEvery, log) },
		func(ctx context.Context) { r.meter.Run(ctx, c.FlushEvery, log) },
		s.afterMigration(func(ctx context.Context) {
			if err := s.jobs.Run(ctx, jobs); err != nil {
				log.Error("no jobs are worked", "err", err)
			}
		}),
		w.runIdentity,
		s.afterMigration(w.reactions.Run),
		s.afterMigration(func(ctx context.Context) {
			if c.Environment == "production" {
				warnOfPlatformRoles(ctx, r.queries, log)
			}
		}),
		s.afterMigration(func(ctx context.Context) {
			// Exports contain the audit key from the start. If this fails, the first call that needs the key creates it.
			if _, err := s.checkpoints.VerifierKey(ctx); err != nil && ctx.Err() == nil {
				log.Warn("the audit key cannot be used", "err", err)
			}
		}),
		s.signing.Run,
		h.monitor.Run,
		s.check,
		func(ctx context.Context) { migrateLater(ctx, databaseURL, migrated, log) },
	)
	return &Node{API: h.api, Ready: r.snapshot.Ready(), Stop: sync.OnceFunc(func() {
		stop()
		s.close()
	})}, nil
}

// withDataFolder creates the data folder. If that fails, it returns the settings without a folder, or an error if the
// folder holds the database or the secret.
func withDataFolder(c settings.Config, log *slog.Logger) (settings.Config, error) {
	if c.Data == "" {
		return c, nil
	}
	if err := os.MkdirAll(c.Data, 0o755); err != nil { //nolint:gosec // its Postgres may run as another user
		if c.DatabaseURL == "" || c.Secret == "" {
			return c, fmt.Errorf("FLAGLEDGER_DATA: %w", err)
		}
		log.Warn(
			"FLAGLEDGER_DATA cannot be used: there is no snapshot on disk and no copy of the public keys, and the next start "+
				"needs the databases", "err", err)
		c.Data = ""
	}
	return c, nil
}

// runAll runs the parts of a node, also after ctx ends. stop ends them and waits.
func runAll(ctx context.Context, runs ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, run := range runs {
		running.Go(func() { run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}
