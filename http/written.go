package http

import (
	"fmt"
	"time"

	"flagledger/http/limit"
)

// dayOfFlags is how many times the bytes that a tenant's flags may have it may write a day.
const dayOfFlags = 8

// limitWritten refuses a change of a tenant that has written as many bytes today as its plan gives. Its error is a problem.
func (a *API) limitWritten(tenantID string) error {
	_, flags := a.Writer.TenantFlagBytes(tenantID)
	bound := dayOfFlags * flags
	if a.Writer.WrittenToday(tenantID) < bound {
		return nil
	}
	now := a.Now()
	tomorrow := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	left := limit.Spent(bound, tomorrow.Sub(now))
	return tooManyRequests(left, fmt.Sprintf("the changes of the tenant took %d bytes today, as many as a day may take, and only flags can still be switched and deleted, "+
		"without an Idempotency-Key; the next day begins at %s", bound, tomorrow.Format(time.RFC3339)))
}
