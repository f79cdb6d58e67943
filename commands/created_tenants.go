package commands

import (
	"context"
	"fmt"
	"time"
)

// MaxCreated limits how many existing tenants a person has created. See Writer.Reserve for its precision.
const MaxCreated = 100

// MaxCreatedPerDay limits how many tenants a person creates on a day in UTC, including deleted ones.
const MaxCreatedPerDay = 200

// CreatedBefore holds how many tenants a person has created; see CountCreated.
type CreatedBefore struct {
	Tenants int       // without deleted ones
	Today   int       // on the day of At in UTC, with deleted ones
	At      time.Time // the time of the count
}

// check refuses another tenant: Conflict if there are too many, TooMany if too many on one day.
func (c CreatedBefore) check() error {
	if c.Tenants >= MaxCreated {
		return refuse(Conflict, "the caller has created %d tenants, and the limit is %d", c.Tenants,
			MaxCreated)
	}
	if c.Today >= MaxCreatedPerDay {
		return TooManyToday(MaxCreatedPerDay, c.At,
			fmt.Sprintf("the caller has created %d tenants today, the limit for a day", c.Today))
	}
	return nil
}

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
) (c CreatedBefore, release func(), err error) {
	var failed error
	_, release, err = w.reserve(ctx, "tenants of "+userID, reservation{
		limit: MaxCreated, margin: MaxCreated, growth: 1, names: []string{"tenant."},
		count: func() int {
			c.At = w.now()
			c.Tenants, c.Today, failed = tenants.CountCreated(ctx, userID, dayOf(c.At))
			return c.Tenants
		},
	})
	if err == nil && failed != nil {
		release()
		return c, nil, failed
	}
	return c, release, err
}
