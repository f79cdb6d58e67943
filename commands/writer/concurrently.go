package writer

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// ForEachConcurrently calls do for each item, as many at once as a tenant may run commands. It starts no more after an
// error or the end of ctx.
func ForEachConcurrently[T any](ctx context.Context, list []T, do func(T) error) error {
	running, until := errgroup.WithContext(ctx)
	running.SetLimit(tenantCommands)
	for _, each := range list {
		running.Go(func() error {
			if until.Err() != nil {
				return until.Err()
			}
			return do(each)
		})
	}
	return running.Wait()
}
