package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"flagledger/commands"
	"flagledger/commands/directory"
	"flagledger/commands/errands"
	"flagledger/commands/idempotency"
	"flagledger/commands/keys"
	"flagledger/commands/metering"
	"flagledger/http"
	"flagledger/projections"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// node is a running service without its listener.
type node struct {
	api   *http.API
	ready <-chan struct{} // closed once flags are evaluated
	stop  func()
}

// start wires all parts together over a database and sets them running.
func start(ctx context.Context, c config, databaseURL string, log *slog.Logger) (*node, error) {
	var cleanup []func()
	stop := sync.OnceFunc(func() {
		for i := len(cleanup) - 1; i >= 0; i-- {
			cleanup[i]()
		}
	})
	facts, closeStore, err := openStore(ctx, c, databaseURL, log)
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, closeStore)
	pool, err := openPool(ctx, databaseURL)
	if err != nil {
		stop()
		return nil, err
	}
	cleanup = append(cleanup, pool.Close)
	mailer, err := c.mailer(log)
	if err != nil {
		stop()
		return nil, err
	}
	signing, err := keys.Open(ctx, pool, c.now, log)
	if err != nil {
		stop()
		return nil, err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	store := measure(facts, metrics)
	live := snapshot.New()
	progress := projections.NewProgress()
	writer := &commands.Writer{Store: store, Await: progress.Wait}
	people, reads := directory.New(pool), queries.New(pool, live)
	identity, err := openIdentity(ctx, c, pool, signing, mailer, endSessions(writer), erasing(writer, people, reads), log)
	if err != nil {
		stop()
		return nil, err
	}
	meter := metering.New(pool)
	requests := idempotency.New(pool)
	chores := errands.New(log)
	monitor := newMonitor(pool, store, live)
	metrics.MustRegister(monitor)

	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	parts.Go(func() { live.Run(running, store, progress.SnapshotReached, log) })
	parts.Go(func() { progress.Listen(running, databaseURL, store.Engine(), log) })
	parts.Go(func() { people.Run(running, log) })
	parts.Go(func() { identity.Run(running) })
	parts.Go(func() { chores.Run(running) })
	parts.Go(func() { meter.Run(running, log) })
	parts.Go(func() { signing.Run(running) })
	parts.Go(func() { requests.Run(running, log) })
	parts.Go(func() { monitor.run(running) })
	parts.Go(func() {
		if err := projections.Run(running, databaseURL, store, progress, log); err != nil && running.Err() == nil {
			log.Error("projections ended", "err", err)
		}
	})
	cleanup = append(cleanup, func() {
		cancel()
		parts.Wait()
	})
	api := http.New(http.Options{
		Writer:   writer,
		Queries:  reads,
		Identity: identity, Keys: signing, Now: c.now, Directory: people, Meter: meter, Requests: requests, Metrics: metrics, Log: log, Health: monitor.health,
		Limits: c.limits, Proxies: c.proxies, Origins: c.Origins, Streams: c.streams,
		Mailer: mailer, Errands: chores, SuperUsers: c.SuperUsers, PublicURL: c.PublicURL, Environment: c.Environment, Build: build,
	})
	return &node{api: api, ready: live.Ready(), stop: stop}, nil
}
