package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"flagledger/commands"
	"flagledger/commands/keep"
	"flagledger/commands/sandbox"
	"flagledger/commands/writer"
	"flagledger/events"
)

// SeedSandbox adds the demo data of a new sandbox. The creating request does so too; the job covers a node that died.
type SeedSandbox struct {
	EventID  string `json:"eventId" river:"unique"`
	TenantID string `json:"tenantId"`
}

// sandboxCleanup restores a sandbox's demo data for the person who asked. A sandbox has at most one such job.
type sandboxCleanup struct {
	TenantID  string    `json:"tenantId" river:"unique"`
	UserID    string    `json:"userId"`
	RequestID string    `json:"requestId"`
	Asked     time.Time `json:"asked,omitzero"`
}

const (
	sandboxQueue    = "sandboxes"
	sandboxWorkers  = 1 // on each node
	sandboxAttempts = 8 // an hour and a quarter
	cleanupDelay    = time.Minute
	cleanupPoll     = 100 * time.Millisecond
	cleanupPriority = 2 // after seeding new sandboxes
)

// Kind implements river.JobArgs.
func (SeedSandbox) Kind() string { return "sandbox.filling" }

// Kind implements river.JobArgs.
func (sandboxCleanup) Kind() string { return "sandbox.cleanup" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (SeedSandbox) InsertOpts() river.InsertOpts {
	return oncePerCause(sandboxQueue, sandboxAttempts)
}

// InsertOpts implements river.JobArgsWithInsertOpts. An ended job does not block the next one.
func (sandboxCleanup) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       sandboxQueue,
		MaxAttempts: sandboxAttempts,
		Priority:    cleanupPriority,
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByState: unfinished},
	}
}

func (j SeedSandbox) tenant() string { return j.TenantID }

// Sandboxes inserts the jobs of sandboxes.
type Sandboxes struct{ client *Client }

// NewSandboxes returns the jobs of sandboxes as jobs of a client.
func NewSandboxes(c *Client) *Sandboxes { return &Sandboxes{c} }

// NoteCleanup implements the Jobs of sandbox.Sandboxes.
func (s *Sandboxes) NoteCleanup(
	ctx context.Context, by writer.By, tenantID string, asked time.Time,
) (drop func(context.Context) error, err error) {
	job := sandboxCleanup{TenantID: tenantID, UserID: by.Actor.ID, RequestID: by.RequestID, Asked: asked}
	var id int64
	for {
		if id, err = s.insertCleanup(ctx, job); err != nil && ctx.Err() == nil {
			return nil, cleanupError(err)
		}
		if err == nil && id > 0 {
			break
		}
		select {
		case <-time.After(cleanupPoll):
		case <-ctx.Done():
			return nil, &commands.Error{
				Kind:   commands.Unavailable,
				Detail: "another cleanup of the sandbox is under way",
				Err:    ctx.Err(),
			}
		}
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		// Another cleanup may have replaced the job.
		_, err := s.client.pool.Exec(ctx, `delete from jobs.river_job where id = $1 and state <> 'running'`, id)
		return cleanupError(err)
	}, nil
}

// insertCleanup inserts a cleanup in place of pending ones, which it covers. It returns the job's id, or 0 while a
// cleanup runs.
func (s *Sandboxes) insertCleanup(ctx context.Context, job sandboxCleanup) (id int64, err error) {
	err = pgx.BeginFunc(ctx, s.client.pool, func(tx pgx.Tx) error {
		// Calls for one sandbox run one after the other, so that each gets its own job.
		if _, err := tx.Exec(
			ctx, `select pg_advisory_xact_lock(hashtext($1), hashtext($2))`, job.Kind(), job.TenantID,
		); err != nil {
			return err
		}
		_, err := tx.Exec(
			ctx,
			`delete from jobs.river_job where kind = $1 and args ->> 'tenantId' = $2
				and state = any($3::text[]::jobs.river_job_state[]) and state <> 'running'`,
			job.Kind(),
			job.TenantID,
			unfinished,
		)
		if err != nil {
			return err
		}
		var running bool
		err = tx.QueryRow(ctx, `select exists (select from jobs.river_job where kind = $1 and args ->> 'tenantId' = $2
			and state = 'running')`,
			job.Kind(), job.TenantID).
			Scan(&running)
		if err != nil || running {
			return err
		}
		noted, err := s.client.river.InsertTx(ctx, tx, job, &river.InsertOpts{ScheduledAt: time.Now().Add(cleanupDelay)})
		if err == nil {
			id = noted.Job.ID
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return id, nil
}

func cleanupError(err error) error {
	return keep.DatabaseError(
		"the cleanup may or may not be made; it leaves alone what was made or changed after it was asked for", err,
	)
}

// addSandboxWorkers adds the workers of sandboxes. It does not retry what a sandbox refuses because it has ended or
// was deleted.
func addSandboxWorkers(workers *river.Workers, sandboxes *sandbox.Sandboxes) {
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[SeedSandbox]) error {
		by := writer.ByService()
		by.RequestID = job.Args.EventID
		return ignoreRefusal(sandboxes.Fill(ctx, by, job.Args.TenantID))
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[sandboxCleanup]) error {
		by := writer.By{Actor: events.Actor{Kind: events.UserActor, ID: job.Args.UserID}, RequestID: job.Args.RequestID}
		asked := job.Args.Asked
		if asked.IsZero() { // inserted by an earlier version
			asked = job.CreatedAt
		}
		return ignoreRefusal(sandboxes.FinishCleanup(ctx, by, job.Args.TenantID, asked))
	}))
}

func ignoreRefusal(err error) error {
	switch commands.KindOf(err) {
	case commands.NotFound, commands.Forbidden, commands.Conflict:
		return river.JobCancel(err)
	default:
		return err
	}
}
