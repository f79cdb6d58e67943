package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"flagledger/cmd/flagledger/node/health"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/checkpoints"
	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/idempotency"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/keys"
	"flagledger/commands/keep/salts"
	"flagledger/commands/keep/tours"
	"flagledger/events"
	"flagledger/events/eventstore"
	"flagledger/events/postgres"
	"flagledger/projections/snapshot"
	"flagledger/retry"
)

// stores holds a node's database connections, their health checks and its keepings.
type stores struct {
	events   events.Store
	check    func(context.Context) // logs problems of an event store that was down at the start
	pool     *pgxpool.Pool
	migrated <-chan struct{} // closed once the database is migrated
	disk     *health.Disk
	metrics  *prometheus.Registry
	secret   keys.Secret
	signing  *keys.Keys
	keepings
	close func()
}

// keepings groups the owners of schema keep and of the queues of jobs. A keeping is data that is neither an event nor a
// read model, such as e-mail addresses.
type keepings struct {
	jobs        *jobs.Client
	links       *jobs.Links
	payments    *jobs.Payments
	inbox       *inbox.Inbox
	directory   *directory.Directory
	requests    *idempotency.Requests
	tours       *tours.Tours
	salts       *salts.Salts
	checkpoints *checkpoints.Checkpoints
}

// openStores opens the event store and the database. It returns the snapshot on disk if it has been read.
func openStores(
	ctx context.Context, c settings.Config, databaseURL string, migrated <-chan struct{}, saved *snapshot.Saved,
	log *slog.Logger,
) (s stores, _ *snapshot.Saved, err error) {
	poolSize, err := c.PoolSize()
	if err != nil {
		return s, nil, err
	}
	secret, err := c.OpenSecret(log)
	if err != nil {
		return s, nil, err
	}
	facts, err := openEventStore(ctx, c, databaseURL, saved, log)
	if err != nil {
		return s, nil, err
	}
	disk, metrics := &health.Disk{}, prometheus.NewRegistry()
	pool, err := openPool(ctx, databaseURL, poolSize, migrated, disk)
	if err != nil {
		facts.close()
		return s, nil, err
	}
	closeAll := func() {
		pool.Close()
		facts.close()
	}
	var signing *keys.Keys
	keepings, err := newKeepings(c, pool, secret)
	if err == nil {
		signing, err = openKeys(ctx, c, pool, secret, migrated, log)
	}
	if err != nil {
		closeAll()
		return s, nil, err
	}
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return stores{
		events:   health.Measure(facts.store, disk, metrics),
		check:    facts.check,
		pool:     pool,
		migrated: migrated,
		disk:     disk,
		metrics:  metrics,
		secret:   secret,
		signing:  signing,
		keepings: keepings,
		close:    closeAll,
	}, facts.saved, nil
}

func newKeepings(c settings.Config, pool *pgxpool.Pool, secret keys.Secret) (k keepings, err error) {
	client, err := jobs.Open(pool)
	if err != nil {
		return k, err
	}
	checkpoints, err := checkpoints.New(pool, secret)
	if err != nil {
		return k, err
	}
	salts, err := salts.New(pool, secret)
	if err != nil {
		return k, err
	}
	return keepings{
		jobs:        client,
		links:       jobs.NewLinks(client),
		payments:    jobs.NewPayments(client, c.Now),
		inbox:       inbox.New(pool, client, c.Now),
		directory:   directory.New(pool, c.Now),
		requests:    idempotency.New(pool, c.WaitTimeout, c.Now),
		tours:       tours.New(pool),
		salts:       salts,
		checkpoints: checkpoints,
	}, nil
}

// keysTimeout limits a start's wait for the signing keys if the database was reached before: then it is slow, not
// down.
const keysTimeout = 30 * time.Second

// openKeys opens the signing keys. If the database was reached before, it retries for keysTimeout.
func openKeys(
	ctx context.Context, c settings.Config, pool *pgxpool.Pool, secret keys.Secret, migrated <-chan struct{},
	log *slog.Logger,
) (opened *keys.Keys, err error) {
	began := time.Now()
	err = retry.Run(ctx, func(func()) (err error) {
		opened, err = keys.Open(ctx, pool, secret, c.PublicKeysFile(), c.Now, log)
		if err != nil &&
			(!isClosed(migrated) || commands.KindOf(err) != commands.Unavailable || time.Since(began) > keysTimeout) {
			return retry.Permanent(err)
		}
		return err
	}, func(err error, wait time.Duration) {
		log.Warn("the signing keys cannot be read yet", "retry_in", wait, "err", err)
	})
	return opened, err
}

// OpenStore opens the configured event store: EventStoreDB if set, otherwise the database.
func OpenStore(
	ctx context.Context, c settings.Config, databaseURL string, log *slog.Logger,
) (store events.Store, closeStore func(), err error) {
	if c.EventStoreURL != "" {
		s, err := eventstore.Open(ctx, c.EventStoreURL, log)
		if err != nil {
			return nil, nil, fmt.Errorf("FLAGLEDGER_EVENTSTORE_URL: %w", err)
		}
		return s, s.Close, nil
	}
	s, err := postgres.Open(ctx, databaseURL, log)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// afterMigration delays a part until the database is migrated.
func (s stores) afterMigration(run func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		select {
		case <-s.migrated:
			run(ctx)
		case <-ctx.Done():
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
