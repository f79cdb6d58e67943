// Package errands does in the background what nobody waits for.
package errands

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	maxWaiting = 1000
	atOnce     = 4
	endTakes   = 5 * time.Second // when the service stops
)

// Errands are waiting to be done.
type Errands struct {
	log     *slog.Logger
	waiting chan func(context.Context)
}

// New returns no errands.
func New(log *slog.Logger) *Errands {
	return &Errands{log, make(chan func(context.Context), maxWaiting)}
}

// Do has something done. It returns at once, so that how long a caller waits tells nothing of it. Errors go to the log, with what could not be
// done; so does an errand that comes when too many wait, and is dropped.
func (e *Errands) Do(ctx context.Context, what string, do func(context.Context) error) {
	errand := func(ctx context.Context) {
		if err := do(ctx); err != nil {
			e.log.WarnContext(ctx, "could not "+what, "err", err)
		}
	}
	select {
	case e.waiting <- errand:
	default:
		e.log.WarnContext(ctx, "could not "+what+": too much waits to be done")
	}
}

// Run does what waits, until ctx ends, and then ends what it is at and does what still waits, within five seconds.
func (e *Errands) Run(ctx context.Context) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	context.AfterFunc(ctx, func() { time.AfterFunc(endTakes, cancel) })
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for ctx.Err() == nil {
				select {
				case errand := <-e.waiting:
					errand(whole)
				case <-ctx.Done():
				}
			}
			for whole.Err() == nil {
				select {
				case errand := <-e.waiting:
					errand(whole)
				default:
					return
				}
			}
		})
	}
	all.Wait()
}

// Settle waits until all that waited when it was called is done.
func (e *Errands) Settle() {
	var here, done sync.WaitGroup
	here.Add(atOnce)
	done.Add(atOnce)
	for range atOnce { // one for each who runs them
		e.waiting <- func(context.Context) {
			defer done.Done()
			here.Done()
			here.Wait()
		}
	}
	done.Wait()
}
