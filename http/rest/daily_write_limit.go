package rest

import (
	"fmt"

	"flagledger/commands"
	"flagledger/http/quota"
)

// LimitWritten refuses a change of a tenant that has written as many bytes today as its plan gives, or whose creator's
// free tenants have written as many as these may together. Its error is TooMany.
func (a *Core) LimitWritten(tenantID string) error {
	most, whose := a.Quotas.Written(tenantID, 100)
	if whose == "" {
		return nil
	}
	return commands.TooManyToday(most, a.Now(),
		fmt.Sprintf("%s took %d bytes today, as many as a day may take, and only flags can still be switched and deleted, "+
			"without an Idempotency-Key", whose, most))
}

// limitToggles limits changes without a body, and calls that pay, past a quarter more than LimitWritten: then a person
// makes ten a minute, and all machines of the tenant as many, so that a person can still turn a flag off.
func (a *Core) limitToggles(p *Principal) error {
	most, whose := a.Quotas.Written(p.Tenant.ID(), quota.SwitchesPercent)
	if whose == "" {
		return nil
	}
	by := "person " + p.Claims.UserID
	if p.Machine != nil {
		by = "machines of " + a.TenantQuota(p.Tenant)
	}
	left := a.Limiter.CountSwitch(by)
	if !left.Exceeded {
		return nil
	}
	return TooManyRequests(left,
		fmt.Sprintf("%s took %d bytes today, and now a person makes %d without a body a minute, as do all machines together",
			whose, most, quota.SwitchesPerMinute))
}

// limitWrittenBy refuses a call of a person that is about no tenant and has an Idempotency-Key, once what is stored for
// such calls and what the person's free tenants have written reach these tenants' limit. Its error is TooMany.
func (a *Core) limitWrittenBy(userID string) error {
	_, flagBytes := a.Quotas.OfCreator(userID)
	most := quota.DailyBytes(flagBytes)
	if a.Quotas.FreeWrittenToday(userID) < most {
		return nil
	}
	return commands.TooManyToday(most, a.Now(),
		fmt.Sprintf("the changes of the caller's free and sandbox tenants and what is kept for Idempotency-Keys took %d "+
			"bytes today, as many as a day may take, and this call can only be made without an Idempotency-Key", most))
}
