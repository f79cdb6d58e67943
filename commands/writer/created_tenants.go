package writer

import (
	"context"
	"time"

	"flagledger/commands"
)

// CreatedTenants counts tenants by creator.
type CreatedTenants interface {
	// CountCreated counts the tenants that a person created: those not deleted, and all since a time. It may miss the
	// latest.
	CountCreated(ctx context.Context, userID string, since time.Time) (tenants, recent int, err error)
}

// CountCreated reserves one of a person's tenant slots, always exactly. It returns Unavailable if the list of tenants
// is behind.
func CountCreated(
	ctx context.Context, w *Writer, tenants CreatedTenants, userID string,
) (c commands.CreatedBefore, release func(), err error) {
	var failed error
	_, release, err = w.reserve(ctx, "tenants of "+userID, reservation{
		limit: commands.MaxCreated, margin: commands.MaxCreated, growth: 1, names: []string{"tenant."},
		count: func() int {
			c.At = w.now()
			c.Tenants, c.Today, failed = tenants.CountCreated(ctx, userID, commands.DayOf(c.At))
			return c.Tenants
		},
	})
	if err == nil && failed != nil {
		release()
		return c, nil, failed
	}
	return c, release, err
}
