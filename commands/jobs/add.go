package jobs

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

// Add inserts jobs in the transaction of their cause. A job that exists for the same cause stays unchanged.
func (c *Client) Add(ctx context.Context, tx pgx.Tx, list ...Job) error {
	if len(list) == 0 {
		return nil
	}
	waiting, err := countWaiting(ctx, tx, list)
	if err != nil {
		return err
	}
	return c.insert(ctx, tx, list, func(job Job) int {
		n := waiting[job.tenant()]
		if job.tenant() != "" {
			waiting[job.tenant()]++
		}
		return priority(n)
	})
}

// insert inserts jobs with their priorities.
func (c *Client) insert(ctx context.Context, tx pgx.Tx, list []Job, priority func(Job) int) error {
	params := make([]river.InsertManyParams, len(list))
	for i, job := range list {
		params[i] = river.InsertManyParams{Args: job, InsertOpts: &river.InsertOpts{Priority: priority(job)}}
	}
	_, err := c.river.InsertManyTx(ctx, tx, params)
	return err
}

// priority returns River's priority of a job, from 1 (first) to 4, by the number of pending jobs of its tenant. At
// most five jobs of a tenant go before the first of another one.
func priority(waiting int) int {
	switch {
	case waiting < 5:
		return 1
	case waiting < 50:
		return 2
	case waiting < 500:
		return 3
	default:
		return 4
	}
}

// countWaiting counts the pending jobs of each tenant, in all queues.
func countWaiting(ctx context.Context, tx pgx.Tx, list []Job) (map[string]int, error) {
	waiting := map[string]int{}
	for _, job := range list {
		if id := job.tenant(); id != "" {
			waiting[id] = 0
		}
	}
	if len(waiting) == 0 {
		return waiting, nil
	}
	ids := make([]string, 0, len(waiting))
	for id := range waiting {
		ids = append(ids, id)
	}
	rows, err := tx.Query(ctx, `select args ->> 'tenantId', count(*) from jobs.river_job
		where finalized_at is null and args ->> 'tenantId' = any($1) group by 1`, ids)
	if err != nil {
		return nil, err
	}
	var id string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		waiting[id] = n
		return nil
	})
	return waiting, err
}
