package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"flagledger/commands/notify"
)

// Entry is a job as operators see it.
type Entry struct {
	ID          int64
	Kind        string
	State       string
	Args        string // JSON: only ids
	Attempt     int    // attempts so far
	MaxAttempts int
	At          time.Time // of the next or the last attempt
	Error       string    // of the last failed attempt
}

const listed = 1000 // jobs

// List returns the last 1,000 jobs in a state, newest first. An empty state means all but completed.
func (c *Client) List(ctx context.Context, state string) ([]Entry, error) {
	states := slices.DeleteFunc(rivertype.JobStates(),
		func(s rivertype.JobState) bool { return s == rivertype.JobStateCompleted })
	if state != "" {
		states = []rivertype.JobState{rivertype.JobState(state)}
	}
	found, err := c.river.JobList(ctx,
		river.NewJobListParams().States(states...).OrderBy(river.JobListOrderByID, river.SortOrderDesc).First(listed))
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	list := make([]Entry, len(found.Jobs))
	for i, job := range found.Jobs {
		list[i] = Entry{
			ID:          job.ID,
			Kind:        job.Kind,
			State:       string(job.State),
			Args:        string(job.EncodedArgs),
			Attempt:     job.Attempt,
			MaxAttempts: job.MaxAttempts,
			At:          job.ScheduledAt,
		}
		if n := len(job.Errors); n > 0 {
			list[i].Error = job.Errors[n-1].Error
		}
	}
	return list, nil
}

// Retry runs a job now, whether it waits, was discarded or is completed. It does not change a running job.
func (c *Client) Retry(ctx context.Context, id int64) error {
	_, err := c.river.JobRetry(ctx, id)
	return withJobID(id, err)
}

// Cancel ends an unfinished job. A discarded one then counts as cancelled instead of failed.
func (c *Client) Cancel(ctx context.Context, id int64) error {
	job, err := c.river.JobCancel(ctx, id)
	if err == nil && job.State == rivertype.JobStateDiscarded {
		_, err = c.pool.Exec(ctx, `update jobs.river_job set state = 'cancelled' where id = $1 and state = 'discarded'`, id)
	}
	return withJobID(id, err)
}

func withJobID(id int64, err error) error {
	if errors.Is(err, rivertype.ErrNotFound) {
		return fmt.Errorf("there is no job %d", id)
	}
	if err != nil {
		return fmt.Errorf("job %d: %w", id, err)
	}
	return nil
}

// Count is the number of jobs of a kind in a state.
type Count struct {
	Kind  string
	State string
	N     int
	// Failing is the number of those that failed five times or were discarded; see Counts.
	Failing int
}

// deferredMails is the number from which deferred mails count as failing: then the mail server may be the reason, not
// the recipients.
const deferredMails = 3

// Counts counts all jobs except completed ones by kind and state. A failed task does not count as failing after a
// later run has succeeded, nor do a few mails that the server deferred.
func (c *Client) Counts(ctx context.Context) ([]Count, error) {
	rows, err := c.pool.Query(ctx, `with job as (
			select kind, state::text as state,
				-- a task that was given up fails until a later run has succeeded
				case state
					when 'cancelled' then false
					when 'discarded' then kind <> $1 or not exists (select from jobs.river_job later
						where later.kind = $1 and later.args = job.args and later.id > job.id and later.state = 'completed')
					else attempt >= 5
				end as failing,
				-- the mail server has put the mail off because of its recipient
				coalesce(errors[cardinality(errors)] ->> 'error' like '%' || $2 || '%', false) as deferred,
				-- tried within a day, and since the last mail that was sent; a link to a new password counts for none, since
				-- its job completes without an account too
				attempted_at > greatest(now() - $3::interval,
					(select max(finalized_at) from jobs.river_job where state = 'completed' and queue = $4 and kind <> $5)) as fresh
			from jobs.river_job job where state in ('available', 'cancelled', 'discarded', 'pending', 'retryable', 'running',
				'scheduled')
		)
		select kind, state, count(*)::int as n, count(*) filter (where failing
			and (not deferred or fresh and (select count(*) from job where failing and deferred
				and fresh) >= $6))::int as failing
		from job group by 1, 2 order by 1, 2`,
		upkeep{}.Kind(), notify.ErrRecipientDeferred.Error(), keptComplete, mailQueue, resetLink{}.Kind(), deferredMails)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Count])
}
