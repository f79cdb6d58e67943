package http

import (
	"fmt"

	"flagledger/commands"
)

// dayOfFlags is how many times the bytes that a tenant's flags may have it may write a day.
const dayOfFlags = 8

// limitWritten refuses a change of a tenant that has written as many bytes today as its plan gives, or whose creator's unpaid tenants have written as many as
// these may together. Its error is TooMany.
func (a *API) limitWritten(tenantID string) error {
	_, flags := a.Writer.TenantFlagBytes(tenantID)
	if bound := dayOfFlags * flags; a.Writer.WrittenToday(tenantID) >= bound {
		return a.tooMuchWritten(bound, "the changes of the tenant")
	}
	creator := a.Writer.UnpaidCreator(tenantID)
	if creator == "" {
		return nil
	}
	_, together := a.Writer.UnpaidFlagBytes(creator)
	if bound := dayOfFlags * together; a.Writer.UnpaidWrittenToday(creator) >= bound {
		return a.tooMuchWritten(bound, "the changes of all free and sandbox tenants of this one's creator")
	}
	return nil
}

func (a *API) tooMuchWritten(bound int, whose string) error {
	return commands.TooManyToday(bound, a.Now(), fmt.Sprintf("%s took %d bytes today, as many as a day may take, and only flags can still be switched and deleted, "+
		"without an Idempotency-Key", whose, bound))
}
