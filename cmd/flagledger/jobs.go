package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/terminal"
	"flagledger/commands/jobs"
)

type jobsCommand struct {
	List   jobsListCommand   `cmd:"" help:"List jobs that are not completed, the newest first."`
	Retry  jobsRetryCommand  `cmd:"" help:"Run jobs now."`
	Cancel jobsCancelCommand `cmd:"" help:"Cancel unfinished jobs."`
}

type jobsListCommand struct {
	State string `enum:"available,cancelled,completed,discarded,pending,retryable,running,scheduled," default:"" help:"Only those in a state: ${enum}."`
}

type jobsRetryCommand struct {
	IDs []int64 `arg:"" name:"id" help:"The jobs' ids."`
}

type jobsCancelCommand struct {
	IDs []int64 `arg:"" name:"id" help:"The jobs' ids."`
}

// Run prints a line for each job.
func (l jobsListCommand) Run(ctx context.Context) error {
	return withJobs(ctx, func(client *jobs.Client) error {
		list, err := client.List(ctx, l.State)
		if err != nil {
			return err
		}
		table := terminal.NewTable(os.Stdout)
		table.Row("ID", "KIND", "STATE", "ATTEMPT", "AT", "ARGUMENTS", "ERROR")
		for _, job := range list {
			table.Row(fmt.Sprint(job.ID), job.Kind, job.State, fmt.Sprintf("%d/%d", job.Attempt, job.MaxAttempts),
				job.At.UTC().Format(time.RFC3339), job.Args, job.Error)
		}
		return table.Flush()
	})
}

// Run runs jobs now.
func (r jobsRetryCommand) Run(ctx context.Context) error {
	return withJobs(ctx, func(client *jobs.Client) error {
		return each(r.IDs, func(id int64) error { return client.Retry(ctx, id) })
	})
}

// Run cancels jobs.
func (c jobsCancelCommand) Run(ctx context.Context) error {
	return withJobs(ctx, func(client *jobs.Client) error {
		return each(c.IDs, func(id int64) error { return client.Cancel(ctx, id) })
	})
}

// each calls a function with every id, and joins the errors.
func each(ids []int64, do func(id int64) error) (err error) {
	for _, id := range ids {
		err = errors.Join(err, do(id))
	}
	return err
}

// withJobs calls use with the jobs of a running server, or of the database alone.
func withJobs(ctx context.Context, use func(*jobs.Client) error) error {
	return withDatabase(ctx, func(_ settings.Config, url string, _ *slog.Logger) error {
		pool, err := node.OpenPool(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		client, err := jobs.Open(pool)
		if err != nil {
			return err
		}
		return use(client)
	})
}
