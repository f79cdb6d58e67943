package http

import (
	"fmt"

	"flagledger/commands"
	"flagledger/http/quota"
)

const (
	// dayOfFlags is how many times the bytes that a tenant's flags may have it may write a day.
	dayOfFlags = 8
	// switchesPercent is how much of that may be written until changes without a body, such as switching a flag, are few a
	// minute.
	switchesPercent = 125
)

// limitWritten refuses a change of a tenant that has written as many bytes today as its plan gives, or whose creator's
// unpaid tenants have written as many as these may together. Its error is TooMany.
func (a *API) limitWritten(tenantID string) error {
	bound, whose := a.writtenBound(tenantID, 100)
	if whose == "" {
		return nil
	}
	return commands.TooManyToday(
		bound,
		a.Now(),
		fmt.Sprintf("%s took %d bytes today, as many as a day may take, and only flags can still be switched and deleted, "+
			"without an Idempotency-Key", whose, bound),
	)
}

// limitSwitches refuses a change without a body, or one that pays, if the tenant has written so much today that
// limitWritten refuses others, and such changes a quarter more: then a person makes ten a minute, and all machines of
// the tenant as many. So a flag can be switched off whoever has written all that.
func (a *API) limitSwitches(p *principal) error {
	bound, whose := a.writtenBound(p.tenant.ID(), switchesPercent)
	if whose == "" {
		return nil
	}
	by := "person " + p.claims.UserID
	if p.machine != nil {
		by = "machines of " + a.tenantQuota(p.tenant)
	}
	left := a.limiter.CountSwitch(by)
	if !left.Exceeded {
		return nil
	}
	return tooManyRequests(
		left,
		fmt.Sprintf("%s took %d bytes today, and now a person makes %d without a body a minute, as do all machines together",
			whose, bound, quota.SwitchesPerMinute),
	)
}

// writtenBound is a bound that the changes of a tenant have reached today, and whose changes those are: the tenant's,
// or those of all unpaid tenants of its creator. whose is empty if neither has. The bounds are so many percent of what
// a day may take.
func (a *API) writtenBound(tenantID string, percent int) (bound int, whose string) {
	_, flags := a.Writer.TenantFlagBytes(tenantID)
	if bound := dayOfFlags * flags * percent / 100; a.Writer.WrittenToday(tenantID) >= bound {
		return bound, "the changes of the tenant"
	}
	creator := a.Writer.UnpaidCreator(tenantID)
	if creator == "" {
		return 0, ""
	}
	if bound := a.unpaidBytesPerDay(creator) * percent / 100; a.Writer.UnpaidWrittenToday(creator) >= bound {
		return bound, "the changes of all free and sandbox tenants of this one's creator"
	}
	return 0, ""
}

// limitWrittenBy refuses a call of a person that is about no tenant and bears an Idempotency-Key, once what is kept for
// such calls and what the person's unpaid tenants have written are as much as these may write in a day. Its error is
// TooMany.
func (a *API) limitWrittenBy(userID string) error {
	if bound := a.unpaidBytesPerDay(userID); a.Writer.UnpaidWrittenToday(userID) >= bound {
		return commands.TooManyToday(
			bound,
			a.Now(),
			fmt.Sprintf(
				"the changes of the caller's free and sandbox tenants and what is kept for Idempotency-Keys took %d bytes "+
					"today, as many as a day may take, and this call can only be made without an Idempotency-Key",
				bound,
			),
		)
	}
	return nil
}

func (a *API) unpaidBytesPerDay(creator string) int {
	_, together := a.Writer.UnpaidFlagBytes(creator)
	return dayOfFlags * together
}
