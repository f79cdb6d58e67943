package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"flagledger/commands"
	"flagledger/commands/background"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/idempotency"
	"flagledger/commands/keep/keys"
	"flagledger/commands/keep/metering"
	"flagledger/http"
	"flagledger/projections"
	"flagledger/projections/models"
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
func start(ctx context.Context, c config, databaseURL string, log *slog.Logger) (n *node, err error) {
	var cleanup []func()
	stop := sync.OnceFunc(func() {
		for i := len(cleanup) - 1; i >= 0; i-- {
			cleanup[i]()
		}
	})
	defer func() {
		if err != nil {
			stop()
		}
	}()
	facts, closeStore, err := openStore(ctx, c, databaseURL, log)
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, closeStore)
	pool, err := openPool(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, pool.Close)
	mailer, err := c.mailer(log)
	if err != nil {
		return nil, err
	}
	signing, err := keys.Open(ctx, pool, c.now, log)
	if err != nil {
		return nil, err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	store := measure(facts, metrics)
	live := snapshot.New()
	progress := projections.NewProgress(models.All())
	writer := &commands.Writer{Store: store, Await: progress.Wait}
	people, reads := directory.New(pool), queries.New(pool, live)
	identity, err := openIdentity(ctx, c, pool, signing, mailer, endSessions(writer), newEraser(writer, pool, people, reads).Erase, log)
	if err != nil {
		return nil, err
	}
	meter := metering.New(pool)
	requests := idempotency.New(pool)
	work, err := jobs.Open(pool)
	if err != nil {
		return nil, err
	}
	later := background.New(log)
	monitor := newMonitor(pool, store, live)
	metrics.MustRegister(monitor)

	cleanup = append(cleanup, runAll(ctx,
		func(ctx context.Context) { live.Run(ctx, store, progress.SnapshotReached, log) },
		func(ctx context.Context) { progress.Listen(ctx, databaseURL, store.Engine(), log) },
		func(ctx context.Context) {
			if err := projections.Run(ctx, databaseURL, store, models.All(), progress, log); err != nil && ctx.Err() == nil {
				log.Error("projections ended", "err", err)
			}
		},
		func(ctx context.Context) { people.Run(ctx, log) },
		func(ctx context.Context) { meter.Run(ctx, log) },
		func(ctx context.Context) {
			if err := work.Run(ctx, jobs.Work{Upkeep: upkeep(requests, meter, pool, c.now), Log: log}); err != nil {
				log.Error("no jobs are worked", "err", err)
			}
		},
		identity.Run,
		later.Run,
		signing.Run,
		monitor.run,
	))
	api := http.New(http.Options{
		Writer:   writer,
		Queries:  reads,
		Identity: identity, Keys: signing, Now: c.now, Directory: people, Meter: meter, Requests: requests, Metrics: metrics, Log: log, Health: monitor.health,
		Limits: c.limits, Proxies: c.proxies, Origins: c.Origins, Streams: c.streams,
		Mailer: mailer, Background: later, SuperUsers: c.SuperUsers, PublicURL: c.PublicURL, Environment: c.Environment, Build: build,
	})
	return &node{api: api, ready: live.Ready(), stop: stop}, nil
}

// runAll runs the parts of a node beyond the end of ctx. stop ends them and waits for it.
func runAll(ctx context.Context, parts ...func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, run := range parts {
		running.Go(func() { run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}
