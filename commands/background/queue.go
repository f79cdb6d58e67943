// Package background does what no request waits for.
package background

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	maxQueued    = 1000
	workers      = 4
	drainTimeout = 5 * time.Second // when the service stops
)

// Queue is what waits to be done, in memory: what a crash finds waiting is lost.
type Queue struct {
	log     *slog.Logger
	waiting chan func(context.Context)
}

// New returns an empty queue. Run works it off.
func New(log *slog.Logger) *Queue {
	return &Queue{log, make(chan func(context.Context), maxQueued)}
}

// Enqueue has something done. It returns at once, so that how long a caller waits tells nothing of it. Errors go to the log, with what could not be
// done; so does what comes when too many wait, and is dropped.
func (q *Queue) Enqueue(ctx context.Context, what string, do func(context.Context) error) {
	job := func(ctx context.Context) {
		if err := do(ctx); err != nil {
			q.log.WarnContext(ctx, "could not "+what, "err", err)
		}
	}
	select {
	case q.waiting <- job:
	default:
		q.log.WarnContext(ctx, "could not "+what+": too much waits to be done")
	}
}

// Run does what waits, until ctx ends, and then ends what it is at and does what still waits, within five seconds.
func (q *Queue) Run(ctx context.Context) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	context.AfterFunc(ctx, func() { time.AfterFunc(drainTimeout, cancel) })
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				select {
				case job := <-q.waiting:
					job(whole)
				case <-ctx.Done():
				}
			}
			for whole.Err() == nil {
				select {
				case job := <-q.waiting:
					job(whole)
				default:
					return
				}
			}
		})
	}
	all.Wait()
}

// Settle waits until all that waited when it was called is done.
func (q *Queue) Settle() {
	var here, done sync.WaitGroup
	here.Add(workers)
	done.Add(workers)
	for range workers { // one for each who runs them
		q.waiting <- func(context.Context) {
			defer done.Done()
			here.Done()
			here.Wait()
		}
	}
	done.Wait()
}
