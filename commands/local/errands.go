package local

import (
	"context"
	"sync"
	"time"
)

const (
	maxErrands     = 1000 // that wait
	errandsAtOnce  = 4
	errandsTakeEnd = 5 * time.Second // when the service stops
)

// later has something done that nobody waits for, so that how long a caller waits tells nothing of it. It takes errors to the log.
func (p *Provider) later(ctx context.Context, do func(context.Context) error) {
	errand := func(ctx context.Context) {
		if err := do(ctx); err != nil {
			p.o.Log.WarnContext(ctx, "a mail was not sent", "err", err)
		}
	}
	select {
	case p.errands <- errand:
	default:
		p.o.Log.WarnContext(ctx, "a mail is not sent: too many wait")
	}
}

// Run does what waits to be done, until ctx ends, and then what still waits, within five seconds.
func (p *Provider) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range errandsAtOnce {
		all.Go(func() {
			for ctx.Err() == nil {
				select {
				case errand := <-p.errands:
					errand(ctx)
				case <-ctx.Done():
				}
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), errandsTakeEnd)
			defer cancel()
			for ctx.Err() == nil {
				select {
				case errand := <-p.errands:
					errand(ctx)
				default:
					return
				}
			}
		})
	}
	all.Wait()
}
