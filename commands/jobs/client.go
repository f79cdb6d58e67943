// Package jobs runs follow-up work of a fact or a request, once, even after a crash. A job is inserted in the
// transaction of its cause and stored until it is done, in River's tables in the schema jobs.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"flagledger/commands/notify"
	"flagledger/commands/sandbox"
	"flagledger/commands/tenants"
	"flagledger/migrations"
	"flagledger/retry"
)

// Client inserts and lists jobs. Run works them.
type Client struct {
	pool  *pgxpool.Pool
	river *river.Client[pgx.Tx]
}

// Open returns a client of a database with the current schema.
func Open(pool *pgxpool.Pool) (*Client, error) {
	c, err := river.NewClient(riverpgxv5.New(pool),
		&river.Config{Schema: migrations.JobsSchema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	return &Client{pool, c}, nil
}

const (
	upkeepQueue = "upkeep"

	mailWorkers   = 4 // on each node
	upkeepWorkers = 1

	jobTimeout    = 30 * time.Second
	upkeepTimeout = 10 * time.Minute
	rescueAfter   = time.Minute // after this or its timeout, a job counts as a dead node's
	stopTimeout   = 5 * time.Second
	keptComplete  = 24 * time.Hour
	keptFailed    = 7 * 24 * time.Hour
)

// Work configures the jobs of a node. Tests leave out parts that they do not need.
type Work struct {
	Mails         *Mails
	Sandboxes     *sandbox.Sandboxes
	Tenancies     *tenants.Tenancies
	Projects      *tenants.DeletedProjects
	Pushes        *Pushes
	Notifications *notify.Notifications
	Payments      Follower
	Upkeep        []Task
	Attempted     func(kind string, outcome Outcome) // called after each attempt
	Log           *slog.Logger
}

// Outcome is the outcome of an attempt at a job.
type Outcome string

// Outcomes of an attempt. Postponed and interrupted ones do not count towards a job's attempts.
const (
	Completed   Outcome = "completed"
	Failed      Outcome = "failed"
	Postponed   Outcome = "postponed"   // the job waits, such as an invitation to an address that got many mails
	Interrupted Outcome = "interrupted" // the node stopped, or an operator cancelled the job
)

// Run works jobs until ctx ends. Running jobs then have five seconds to finish; the rest continue on another node, or
// after the next start.
func (c *Client) Run(ctx context.Context, w Work) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, &upkeepWorker{tasks: w.Upkeep})
	mailJobs{w.Mails, c.pool, NewWindows(c.pool)}.addWorkers(workers)
	river.AddWorker(workers, noticeWorker(w.Notifications))
	river.AddWorker(workers, pushWorker{Pushes: w.Pushes, client: c, log: w.Log})
	river.AddWorker(workers, paymentWorker(w.Payments))
	river.AddWorker(workers, forgettingWorker(w.Tenancies))
	river.AddWorker(workers, releaseWorker(w.Projects))
	addSandboxWorkers(workers, w.Sandboxes)
	node, err := river.NewClient(riverpgxv5.New(c.pool), &river.Config{
		Schema:  migrations.JobsSchema,
		Workers: workers,
		Queues: map[string]river.QueueConfig{
			mailQueue:    {MaxWorkers: mailWorkers},
			upkeepQueue:  {MaxWorkers: upkeepWorkers},
			noticeQueue:  {MaxWorkers: noticeWorkers},
			pushQueue:    {MaxWorkers: pushWorkers},
			paymentQueue: {MaxWorkers: paymentWorkers},
			tenantQueue:  {MaxWorkers: tenantWorkers},
			projectQueue: {MaxWorkers: projectWorkers},
			sandboxQueue: {MaxWorkers: sandboxWorkers},
		},
		PeriodicJobs:                w.periodic(),
		Middleware:                  []rivertype.Middleware{river.WorkerMiddlewareFunc(w.observe)},
		JobTimeout:                  jobTimeout,
		RescueStuckJobsAfter:        rescueAfter,
		SoftStopTimeout:             stopTimeout,
		CompletedJobRetentionPeriod: keptComplete,
		CancelledJobRetentionPeriod: keptFailed,
		DiscardedJobRetentionPeriod: keptFailed,
		Logger:                      slog.New(warnings{w.Log.Handler()}),
	})
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	err = retry.Run(ctx, func(func()) error { return node.Start(ctx) }, func(err error, wait time.Duration) {
		w.Log.Warn("jobs are not worked yet", "retry_in", wait, "err", err)
	})
	if err != nil {
		return nil //nolint:nilerr // ctx has ended
	}
	<-ctx.Done()
	select {
	case <-node.Stopped():
	case <-time.After(2 * stopTimeout): // the database is gone, so the last results cannot be stored
	}
	return nil
}

// observe logs failures, and reports the outcome of each attempt.
func (w Work) observe(ctx context.Context, job *rivertype.JobRow, work func(context.Context) error) (err error) {
	outcome := Failed
	defer func() { w.Attempted(job.Kind, outcome) }()
	err = work(ctx)
	switch {
	case err == nil:
		outcome = Completed
	case errors.Is(err, &river.JobSnoozeError{}):
		outcome = Postponed
	case errors.Is(ctx.Err(), context.Canceled):
		outcome = Interrupted
	default:
		w.Log.WarnContext(ctx, "a job failed", "job", job.ID, "kind", job.Kind, "attempt", job.Attempt, "of", job.MaxAttempts,
			"err", err)
	}
	return err
}

// warnings drops River's routine log lines.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }
