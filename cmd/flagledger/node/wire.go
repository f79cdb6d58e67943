// Package node is one running node of the service: its settings, the wiring of all parts, and what watches over them.
package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/idempotency"
	"flagledger/commands/keep/keys"
	"flagledger/commands/keep/metering"
	"flagledger/events"
	"flagledger/http"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/reactions"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

// flushInterval is how often what nodes count in memory is written down.
const flushInterval = 5 * time.Second

// Node is a running service without its listener.
type Node struct {
	API   *http.API
	Ready <-chan struct{} // closed once flags are evaluated
	Stop  func()          // ends all parts and waits for them; may be called again
}

// Start wires all parts together over a database at the newest schema, and sets them running until Stop.
func Start(ctx context.Context, c Config, databaseURL string, log *slog.Logger) (n *Node, err error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.PoolSize == 0 {
		c.PoolSize = poolConnections
	}
	if c.FlushEvery == 0 {
		c.FlushEvery = flushInterval
	}
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
	facts, closeStore, err := OpenStore(ctx, c, databaseURL, log)
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, closeStore)
	pool, err := openPool(ctx, databaseURL, c.PoolSize)
	if err != nil {
		return nil, err
	}
	cleanup = append(cleanup, pool.Close)
	mailer, err := c.mailer(log)
	if err != nil {
		return nil, err
	}
	signing, err := keys.Open(ctx, pool, c.Now, log)
	if err != nil {
		return nil, err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	store := measure(facts, metrics)
	live := snapshot.New()
	progress := projections.NewProgress(models.All())
	live.AnnounceWhenShown(func(ctx context.Context, position events.Position) { progress.Wait(ctx, position, []string{"flag."}) })
	writer := commands.NewWriter(store, progress.Wait)
	people, reads := directory.New(pool), queries.New(pool)
	queue, err := jobs.Open(pool)
	if err != nil {
		return nil, err
	}
	links := jobs.NewLinks(queue)
	identity, runIdentity, err := openIdentity(ctx, c, pool, signing, links, mailer, writer.SessionsEnded, newEraser(writer, pool, links, people, reads).Erase, log)
	if err != nil {
		return nil, err
	}
	meter := metering.New(pool, c.Now)
	requests := idempotency.New(pool, c.Now)
	following := reactions.New(pool, store, queue, log)
	if err := begin(ctx, following); err != nil {
		log.Warn("reactions cannot begin yet", "err", err)
	}
	work := jobs.Work{
		Mails:  &jobs.Mails{Mailer: mailer, Links: identity, Writer: writer, Directory: people, PublicURL: c.PublicURL, Now: c.Now},
		Upkeep: upkeep(requests, meter, links, pool, c.Now),
		Log:    log, Attempted: countAttempts(metrics),
	}
	superUsers := commands.NewSuperUsers(c.SuperUsers)
	signIn := &commands.SignIn{Writer: writer, Sessions: identity, Directory: people, People: live, SuperUsers: superUsers, Now: c.Now, Log: log}
	inviter := &commands.Inviter{Writer: writer, Directory: people, Invitations: reads, SuperUsers: superUsers}
	monitor := newMonitor(pool, store, live, jobsMonitor{queue, following})
	metrics.MustRegister(monitor)

	cleanup = append(cleanup, runAll(ctx,
		func(ctx context.Context) { live.Run(ctx, store, progress.SnapshotReached, log) },
		func(ctx context.Context) {
			if err := projections.Run(ctx, databaseURL, store, models.All(), progress, log); err != nil && ctx.Err() == nil {
				log.Error("projections ended", "err", err)
			}
		},
		func(ctx context.Context) { people.Run(ctx, c.FlushEvery, log) },
		func(ctx context.Context) { meter.Run(ctx, c.FlushEvery, log) },
		func(ctx context.Context) {
			if err := queue.Run(ctx, work); err != nil {
				log.Error("no jobs are worked", "err", err)
			}
		},
		runIdentity,
		following.Run,
		signing.Run,
		monitor.run,
	))
	api := http.New(http.Options{
		Writer: writer, Queries: reads, Live: live, Changes: live,
		Identity: identity, SignIn: signIn, Inviter: inviter, Tenancies: &commands.Tenancies{Directory: people},
		Keys: signing, Directory: people, Meter: meter, Requests: requests,
		Metrics: metrics, Log: log, Health: monitor.health, Now: c.Now,
		Limits: c.Limits, Proxies: c.ProxyNetworks, Origins: c.Origins, Streams: c.Streams,
		SuperUsers: superUsers, PublicURL: c.PublicURL, Environment: c.Environment, Build: c.Build,
	})
	return &Node{API: api, Ready: live.Ready(), Stop: stop}, nil
}

// begin starts reactions before the first change can be made. Where the store cannot be reached, the node starts all the same, and reactions begin
// once it can.
func begin(ctx context.Context, following *reactions.Reactions) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return following.Begin(ctx)
}

// runAll runs the parts of a node, also after ctx ends. stop ends them and waits.
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
