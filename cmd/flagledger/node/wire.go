// Package node is one running node of the service: its settings, the wiring of all parts, and their monitoring.
package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"flagledger/commands"
	"flagledger/commands/jobs"
	"flagledger/commands/keep/checkpoints"
	"flagledger/commands/keep/directory"
	"flagledger/commands/keep/idempotency"
	"flagledger/commands/keep/inbox"
	"flagledger/commands/keep/keys"
	"flagledger/commands/keep/tours"
	"flagledger/events"
	"flagledger/http"
	"flagledger/http/quota"
	"flagledger/projections"
	"flagledger/projections/models"
	"flagledger/projections/reactions"
	"flagledger/projections/snapshot"
	"flagledger/projections/usage"
	"flagledger/queries"
	"flagledger/retry"
)

// Node is a running service without its listener.
type Node struct {
	API   *http.API
	Ready <-chan struct{} // closed once flags are evaluated
	Stop  func()          // ends all parts and waits for them; idempotent
}

// Start wires all parts over a migrated database, and runs them until Stop.
func Start(ctx context.Context, c Config, databaseURL string, log *slog.Logger) (*Node, error) {
	return start(ctx, c, databaseURL, nil, log)
}

// start does the work of Start, and of StartWithoutDatabase if the snapshot on disk has been read.
func start(
	ctx context.Context, c Config, databaseURL string, saved *snapshot.Saved, log *slog.Logger,
) (n *Node, err error) {
	p := &parts{
		Config:   c.withDefaults(),
		saved:    saved,
		migrated: make(chan struct{}),
		disk:     &diskWatch{},
		log:      log,
		metrics:  prometheus.NewRegistry(),
	}
	if saved == nil {
		close(p.migrated)
	}
	if c.Data != "" {
		if err := os.MkdirAll(c.Data, 0o755); err != nil { //nolint:gosec // its Postgres may run as another user
			if c.DatabaseURL == "" || c.Secret == "" { // they are stored only there
				return nil, fmt.Errorf("FLAGLEDGER_DATA: %w", err)
			}
			log.Warn(
				"FLAGLEDGER_DATA cannot be used: there is no snapshot on disk and no copy of the public keys, and the next start "+
					"needs the databases",
				"err",
				err,
			)
			p.Data = ""
		}
	}
	stop := sync.OnceFunc(p.stop)
	defer func() {
		if err != nil {
			stop()
		}
	}()
	if err := p.open(ctx, databaseURL); err != nil {
		return nil, err
	}
	if err := p.wire(ctx); err != nil {
		return nil, err
	}
	p.run(ctx, databaseURL)
	return &Node{API: p.api(), Ready: p.snapshot.Ready(), Stop: stop}, nil
}

// parts holds the parts of a node.
type parts struct {
	Config
	// saved is the snapshot on disk, if it was read because a database is down; nil once the parts are wired.
	saved    *snapshot.Saved
	migrated chan struct{} // closed once the database is migrated: until then it is not used
	disk     *diskWatch
	log      *slog.Logger
	metrics  *prometheus.Registry
	closers  []func() // in order of opening; stop runs them in reverse

	// Opened connections.
	store events.Store
	// checkStore runs in the background for a store that was down at the start; nil for any other.
	checkStore func(context.Context)
	pool       *pgxpool.Pool
	mailer     commands.Mailer
	pusher     commands.Pusher
	secret     keys.Secret
	signing    *keys.Keys

	// Parts that use the connections.
	snapshot      *snapshot.Snapshot
	progress      *projections.Progress
	tenantQuotas  *quota.Tenants
	writer        *commands.Writer
	queries       *queries.Queries
	directory     *directory.Directory
	meter         *usage.Meter
	requests      *idempotency.Requests
	tours         *tours.Tours
	checkpoints   *checkpoints.Checkpoints
	tenancies     *commands.Tenancies
	sandboxes     *commands.Sandboxes
	jobs          *jobs.Client
	links         *jobs.Links
	inbox         *inbox.Inbox
	notifications *commands.Notifications
	payments      *jobs.Payments
	billing       *commands.Billing
	reactions     *reactions.Reactions
	identity      provider
	runIdentity   func(context.Context)
	monitor       *monitor
}

func (p *parts) stop() {
	for _, end := range slices.Backward(p.closers) {
		end()
	}
}

// open opens the stores, the mailer and the signing keys.
func (p *parts) open(ctx context.Context, databaseURL string) error {
	poolSize, err := p.poolSize()
	if err != nil {
		return err
	}
	facts, closeStore, check, err := p.openStore(ctx, databaseURL)
	if err != nil {
		return err
	}
	p.checkStore = check
	p.closers = append(p.closers, closeStore)
	if p.pool, err = openPool(ctx, databaseURL, poolSize, p.migrated, p.disk); err != nil {
		return err
	}
	p.closers = append(p.closers, p.pool.Close)
	if p.mailer, err = p.openMailer(p.log); err != nil {
		return err
	}
	if p.pusher, err = p.openPusher(ctx, p.log); err != nil {
		return err
	}
	if p.secret, err = p.openSecret(p.log); err != nil {
		return err
	}
	if p.signing, err = p.openKeys(ctx); err != nil {
		return err
	}
	p.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.store = measure(facts, p.disk, p.metrics)
	return nil
}

// isMigrated reports whether the database has been migrated.
func (p *parts) isMigrated() bool {
	select {
	case <-p.migrated:
		return true
	default:
		return false
	}
}

// keysTimeout limits a start's wait for the signing keys if the database was reached before: then it is slow, not
// down.
const keysTimeout = 30 * time.Second

// openKeys opens the signing keys. If the database was reached before, it retries for keysTimeout.
func (p *parts) openKeys(ctx context.Context) (*keys.Keys, error) {
	began := time.Now()
	var opened *keys.Keys
	err := retry.Run(ctx, func(func()) (err error) {
		opened, err = keys.Open(ctx, p.pool, p.secret, p.publicKeysFile(), p.Now, p.log)
		if err != nil &&
			(!p.isMigrated() || commands.KindOf(err) != commands.Unavailable || time.Since(began) > keysTimeout) {
			return retry.Permanent(err)
		}
		return err
	}, func(err error, wait time.Duration) {
		p.log.Warn("the signing keys cannot be read yet", "retry_in", wait, "err", err)
	})
	return opened, err
}

// wire creates the parts that use the opened connections.
func (p *parts) wire(ctx context.Context) (err error) {
	p.progress = projections.NewProgress(models.All(), p.WaitTimeout)
	p.snapshot = snapshot.New(snapshot.Options{
		Shown: func(ctx context.Context, position events.Position) {
			p.progress.Wait(ctx, position, []string{"flag."})
		},
		File:  p.snapshotFile(),
		Saved: p.saved,
		Began: p.progress.SnapshotBegan,
	})
	p.saved = nil // frees its memory once the snapshot has begun with it
	if p.jobs, err = jobs.Open(p.pool); err != nil {
		return err
	}
	checkpoint := reactions.NewCheckpoint(p.pool, p.store, p.log)
	p.tenantQuotas = &quota.Tenants{
		Live: p.snapshot, FlagBytes: p.FlagBytes, Limiter: quota.NewLimiter(p.Limits, p.ProxyNetworks, p.Now), Now: p.Now,
	}
	p.writer = commands.NewWriter(jobsReadyStore{p.store, checkpoint.Begin}, p.progress.Wait, p.tenantQuotas, p.Now)
	p.queries = queries.New(p.pool, p.store, p.progress.Wait)
	p.reactions = reactions.New(checkpoint, p.jobs, func(ctx context.Context, id string) (bool, error) {
		return commands.ProjectExists(ctx, p.writer, id)
	})
	p.directory = directory.New(p.pool, p.Now)
	p.meter = usage.New(p.pool, p.tenantQuotas.Creator, p.Now)
	p.requests = idempotency.New(p.pool, p.WaitTimeout, p.Now)
	p.sandboxes = &commands.Sandboxes{
		Writer:    p.writer,
		Directory: p.directory,
		Contents:  p.queries,
		Meter:     p.meter,
		Jobs:      jobs.NewSandboxes(p.jobs),
		People:    p.snapshot,
		Active:    p.SandboxFor,
		Now:       p.Now,
		Log:       p.log,
	}
	p.links = jobs.NewLinks(p.jobs)
	p.inbox = inbox.New(p.pool, p.jobs, p.Now)
	p.notifications = &commands.Notifications{Writer: p.writer, Inbox: p.inbox, Visits: p.directory}
	p.tours = tours.New(p.pool)
	if p.checkpoints, err = checkpoints.New(p.pool, p.secret); err != nil {
		return err
	}
	p.tenancies = &commands.Tenancies{
		Directory: p.directory,
		Keepings:  []commands.TenantData{p.directory, p.tours, p.inbox},
		Uses:      p.meter,
	}
	erase := newEraser(p.writer, p.pool, p.links, p.directory, p.inbox, p.queries).Erase
	p.identity, p.runIdentity, err = openIdentity(ctx, p.Config, p.pool, p.signing, p.links, p.mailer,
		p.writer.SessionsEnded, erase, p.log)
	if err != nil {
		return err
	}
	p.payments = jobs.NewPayments(p.jobs, p.Now)
	if p.billing, err = p.openBilling(p.writer, p.payments, p.log); err != nil {
		return err
	}
	p.monitor = newMonitor(&monitor{
		pool:       p.pool,
		store:      p.store,
		inDatabase: p.EventStoreURL == "",
		snapshot:   p.snapshot,
		progress:   p.progress,
		signs:      p.signing.Signs,
		jobs:       jobsMonitor{p.jobs, p.reactions},
		disk:       p.disk,
		data:       p.Data,
	})
	p.metrics.MustRegister(p.monitor)
	return nil
}

// run starts the background parts.
func (p *parts) run(ctx context.Context, databaseURL string) {
	work := jobs.Work{
		Mails: &jobs.Mails{
			Mailer:    p.mailer,
			Links:     p.identity,
			Writer:    p.writer,
			Directory: p.directory,
			PublicURL: p.PublicURL,
			Now:       p.Now,
		},
		Pushes: &jobs.Pushes{
			Pusher:     p.pusher,
			Inbox:      p.inbox,
			People:     p.snapshot,
			Recipients: p.notifications,
		},
		Notifications: p.notifications,
		Sandboxes:     p.sandboxes,
		Tenancies:     p.tenancies,
		Projects:      &commands.DeletedProjects{Writer: p.writer, Flags: p.snapshot},
		Payments:      p.billing,
		Upkeep:        p.upkeep(),
		Log:           p.log,
		Attempted:     countAttempts(p.metrics),
	}
	runs := []func(context.Context){
		func(ctx context.Context) { p.snapshot.Run(ctx, p.store, p.progress.SnapshotReached, p.log) },
		p.afterMigration(func(ctx context.Context) {
			if err := projections.Run(ctx, databaseURL, p.store, models.All(), p.progress, p.log); err != nil &&
				ctx.Err() == nil {
				p.log.Error("projections ended", "err", err)
			}
		}),
		func(ctx context.Context) { p.directory.Run(ctx, p.FlushEvery, p.log) },
		func(ctx context.Context) { p.meter.Run(ctx, p.FlushEvery, p.log) },
		p.afterMigration(func(ctx context.Context) {
			if err := p.jobs.Run(ctx, work); err != nil {
				p.log.Error("no jobs are worked", "err", err)
			}
		}),
		p.runIdentity,
		p.afterMigration(p.reactions.Run),
		p.afterMigration(p.warnOfPlatformRoles),
		p.afterMigration(p.makeAuditKey),
		p.signing.Run,
		p.monitor.run,
	}
	if p.checkStore != nil {
		runs = append(runs, p.checkStore)
	}
	if !p.isMigrated() {
		runs = append(runs, func(ctx context.Context) { p.migrateLater(ctx, databaseURL) })
	}
	p.closers = append(p.closers, runAll(ctx, runs...))
}

func (p *parts) api() *http.API {
	superUsers := commands.NewSuperUsers(p.SuperUsers)
	signIn := &commands.SignIn{
		Writer:     p.writer,
		Sessions:   p.identity,
		Directory:  p.directory,
		People:     p.snapshot,
		SuperUsers: superUsers,
		Now:        p.Now,
		Log:        p.log,
	}
	return http.New(http.Options{
		Writer:       p.writer,
		Queries:      p.queries,
		Reads:        max(1, int(p.pool.Config().MaxConns)/2),
		QueueTimeout: p.WaitTimeout,
		Live:         p.snapshot,
		Changes:      p.snapshot,
		Identity:     p.identity,
		SignIn:       signIn,
		Tenancies:    p.tenancies,
		Sandboxes:    p.sandboxes,
		Links:        p.links,
		SandboxSignUp: &commands.SandboxSignUp{
			Links:     p.links,
			Identity:  p.identity,
			Tenants:   p.queries,
			SignIn:    signIn,
			Sandboxes: p.sandboxes,
		},
		Billing:       p.billing,
		Inbox:         p.inbox,
		Notifications: p.notifications,
		Reclaimer: &commands.Reclaimer{
			Writer:    p.writer,
			People:    p.snapshot,
			Tenancies: p.tenancies,
			Keepings:  []commands.PersonalData{p.tours, p.inbox},
		},
		DailyInvitations: jobs.NewDailyInvitations(p.pool),
		Inviter: &commands.Inviter{
			Writer:      p.writer,
			Directory:   p.directory,
			Invitations: p.queries,
			SuperUsers:  superUsers,
		},
		Keys:              p.signing,
		Secret:            p.secret,
		Directory:         p.directory,
		Meter:             p.meter,
		Tours:             p.tours,
		Checkpoints:       p.checkpoints,
		Idempotency:       p.requests,
		Metrics:           p.metrics,
		LoopbackMetrics:   p.Environment == "development" && p.MetricsAddr == "",
		Log:               p.log,
		Troubles:          p.monitor.health,
		Status:            p.monitor.status,
		Now:               p.Now,
		StaleAfter:        p.StaleFor,
		Quotas:            p.tenantQuotas,
		InvitationsPerDay: p.InvitationsPerDay,
		Features:          p.Features,
		Proxies:           p.ProxyNetworks,
		Origins:           p.Origins,
		StreamLimits:      p.Streams,
		SuperUsers:        superUsers,
		PublicURL:         p.PublicURL,
		FollowHost:        p.PublicURLAssumed,
		Environment:       p.Environment,
		Build:             p.Build,
	})
}

// makeAuditKey creates the key of checkpoints if there is none, so that an export has it early. If this fails, the
// first call that needs the key creates it.
func (p *parts) makeAuditKey(ctx context.Context) {
	if _, err := p.checkpoints.VerifierKey(ctx); err != nil && ctx.Err() == nil {
		p.log.Warn("the audit key cannot be used", "err", err)
	}
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
