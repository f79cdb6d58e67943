package http

import (
	"cmp"
	"context"

	"flagledger/events"
	"flagledger/projections/snapshot"
)

// A request uses three quotas: of requests, of costly work, and of answers that wait to be read. This file says whose.

// requestQuota is the tenant whose quota of requests a request uses, with its creator and plan. A machine uses its tenant's. A person uses that of the tenant that
// the path or header names or, if they are no member of it, of their first; without a tenant id is the user's.
func (a *API) requestQuota(c *credential, named string) (id, creator string, plan events.Plan) {
	if c.machine != nil {
		plan = events.FreePlan
		if tenant, ok := a.Live.Tenant(c.machine.tenantID); ok {
			creator, plan = tenant.Creator(), tenant.Plan(a.Now())
		}
		return c.machine.tenantID, creator, plan
	}
	if tenant, ok := a.Live.Tenant(named); ok {
		if _, member := tenant.Role(c.claims.UserID); member {
			return named, tenant.Creator(), tenant.Plan(a.Now())
		}
	}
	for _, id := range a.Live.TenantsOf(c.claims.UserID) {
		if tenant, ok := a.Live.Tenant(id); ok {
			return id, tenant.Creator(), tenant.Plan(a.Now())
		}
	}
	return c.claims.UserID, "", events.FreePlan
}

// workQuota names whose quota of costly work a call uses: its tenant's, the person's if it is about no tenant, or the client site's if anyone may make it or the
// person's address is not verified.
func (a *API) workQuota(ctx context.Context, p *principal) string {
	switch {
	case !a.isVerified(p.credential):
		return a.siteQuota(requestOf(ctx))
	case p.tenant != nil:
		return a.tenantQuota(p.tenant)
	case p.claims.UserID != "":
		return p.claims.UserID
	default:
		return a.siteQuota(requestOf(ctx))
	}
}

// siteQuota names the quota of all clients of a site who are not known otherwise: whoever has one has many networks, and makes accounts at will.
func (a *API) siteQuota(req *request) string { return "site " + a.limiter.Site(req.received).String() }

// tenantQuota names whose quota a tenant uses: if nobody pays for it its creator's, so that many such tenants give nobody many quotas.
func (a *API) tenantQuota(tenant *snapshot.Tenant) string {
	if tenant.Plan(a.Now()).Unpaid() {
		return cmp.Or(tenant.Creator(), tenant.ID())
	}
	return tenant.ID()
}

// answerQuota names whose quota of unread answers a request uses: that of a person whose address is verified, of the machine's tenant, or of anybody else's site.
func (a *API) answerQuota(req *request) string {
	switch {
	case req.credential == nil || !a.isVerified(req.credential):
		return a.siteQuota(req)
	case req.credential.machine != nil:
		return req.credential.machine.tenantID
	default:
		return req.credential.claims.UserID
	}
}
