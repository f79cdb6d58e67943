package commands

import (
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

// Check refuses another tenant: Conflict if there are too many, TooMany if too many on one day.
func (c CreatedBefore) Check() error {
	if c.Tenants >= MaxCreated {
		return Refuse(Conflict, "the caller has created %d tenants, and the limit is %d", c.Tenants,
			MaxCreated)
	}
	if c.Today >= MaxCreatedPerDay {
		return TooManyToday(MaxCreatedPerDay, c.At,
			fmt.Sprintf("the caller has created %d tenants today, the limit for a day", c.Today))
	}
	return nil
}
