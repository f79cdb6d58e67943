package commands

import (
	"context"
	"fmt"
	"time"
)

// MaxCreated is how many tenants of one's own making one may have. See Writer.Admit for how exactly it is held.
const MaxCreated = 100

// MaxCreatedPerDay is how many tenants one may create on a day in UTC, those included that are deleted since.
const MaxCreatedPerDay = 200

// CreatedBefore is how many tenants a person has created, by CountCreated.
type CreatedBefore struct {
	Tenants int       // deleted ones aside
	Today   int       // on the day of At, in UTC, deleted ones included
	At      time.Time // when they were counted
}

// check refuses one more: Conflict where there are too many, TooMany on a day with too many.
func (c CreatedBefore) check() error {
	if c.Tenants >= MaxCreated {
		return refuse(Conflict, "the caller has created %d tenants: whoever has created %d may create no more", c.Tenants,
			MaxCreated)
	}
	if c.Today >= MaxCreatedPerDay {
		return TooManyToday(MaxCreatedPerDay, c.At,
			fmt.Sprintf("the caller has created %d tenants today, as many as a day may have", c.Today))
	}
	return nil
}

// CreatedTenants counts tenants by who created them.
type CreatedTenants interface {
	// CountCreated counts the tenants that a person has created: those that are not deleted, and all since a time. It may
	// miss one that was created just now.
	CountCreated(ctx context.Context, userID string, since time.Time) (tenants, recent int, err error)
}

// CountCreated counts the tenants that a person has created, as Writer.Admit does with MaxCreated: exactly from the
// first, as many may be made at once. While the list of tenants is behind, it returns Unavailable.
func CountCreated(
	ctx context.Context, w *Writer, tenants CreatedTenants, userID string,
) (c CreatedBefore, release func(), err error) {
	var failed error
	_, release, err = w.admitUpTo(
		ctx,
		"tenants of "+userID,
		limit{bound: MaxCreated, margin: MaxCreated, growth: 1},
		[]string{"tenant."},
		func() int {
			c.At = w.now()
			c.Tenants, c.Today, failed = tenants.CountCreated(ctx, userID, dayOf(c.At))
			return c.Tenants
		},
	)
	if err == nil && failed != nil {
		release()
		return c, nil, failed
	}
	return c, release, err
}
