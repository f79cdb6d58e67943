package rest

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"flagledger/commands/people"
	"flagledger/events"
	"flagledger/http/quota"
	"flagledger/projections/snapshot"
)

// A request uses three quotas: of requests, of costly work, and of answers that wait to be read. This file says whose.

// requestQuota is the tenant whose quota of requests a request uses, with its creator and plan. A machine uses its
// tenant's. A person uses that of the tenant that the path or header names or, if they are no member of it, of their
// canonical one. If none is known in memory, id is the user's.
func (a *Core) requestQuota(c *Credential, named string) (id, creator string, plan events.Plan) {
	if c.Machine != nil {
		plan = events.FreePlan
		if tenant, ok := a.tenantOfMachine(c.Machine); ok {
			creator, plan = tenant.Creator(), tenant.Plan(a.Now())
		}
		return c.Machine.TenantID, creator, plan
	}
	if tenant, ok := a.Live.Tenant(named); ok {
		if _, member := tenant.Role(c.Claims.UserID); member {
			return named, tenant.Creator(), tenant.Plan(a.Now())
		}
	}
	id, _ = people.KnownCanonicalTenant(a.Live, a.Directory, c.Claims.UserID, a.TenantsOf(c.Claims))
	if tenant, ok := a.Live.Tenant(id); ok {
		return id, tenant.Creator(), tenant.Plan(a.Now())
	}
	return c.Claims.UserID, "", events.FreePlan
}

// count counts a request for whom it is of: the client address where it signs in or has no good token, and else the
// person or machine with the tenant.
func (a *Core) count(r *http.Request, req *request) quota.Budget {
	switch {
	case signsIn(routedPath(r)):
		return a.Limiter.CountSignIn(r)
	case req.tokenRefusal != nil:
		return a.Limiter.CountAddress(r)
	default:
		return a.CountAuthenticated(r, req.credential)
	}
}

// CountAuthenticated counts a request of a caller with a token.
func (a *Core) CountAuthenticated(r *http.Request, c *Credential) quota.Budget {
	tenantID, creator, plan := a.requestQuota(c, cmp.Or(tenantOfPath(r.URL.Path), r.Header.Get(tenantHeader)))
	switch {
	case c.HasBrowserKey():
		return a.Limiter.CountBrowser(r, creator, tenantID, plan)
	case c.Machine != nil:
		return a.Limiter.CountMachine(creator, tenantID, plan)
	}
	best := a.BestPlan(c.Claims.UserID)
	if !a.isVerified(c) {
		return a.Limiter.CountUnverified(r, c.Claims.UserID, best, tenantID, plan)
	}
	return a.Limiter.CountPerson(c.Claims.UserID, best, tenantID, plan)
}

// maxPlans is how many of a person's tenants are asked for the best plan at each request: others may add people to any
// number.
const maxPlans = 100

// BestPlan returns the plan with the most requests among a person's first tenants, or the free plan.
func (a *Core) BestPlan(userID string) events.Plan {
	best, now := events.FreePlan, a.Now()
	tenants := a.Live.TenantsOf(userID)
	for _, id := range tenants[:min(len(tenants), maxPlans)] {
		if tenant, ok := a.Live.Tenant(id); ok {
			if plan := tenant.Plan(now); a.Limiter.RequestsPerMinute(plan) > a.Limiter.RequestsPerMinute(best) {
				best = plan
			}
		}
	}
	return best
}

// tenantOfPath is the tenant that a path names, empty where it names none.
func tenantOfPath(path string) string {
	for _, prefix := range [...]string{"/api/v1/tenants/", "/api/tenants/"} {
		if tail, found := strings.CutPrefix(path, prefix); found {
			id, _, _ := strings.Cut(tail, "/")
			return events.CanonicalID(id)
		}
	}
	return ""
}

// signsIn reports whether a path takes credentials from anyone.
func signsIn(path string) bool {
	switch path {
	case "/api/v1/oauth/token", "/oauth/token", SubscribeRoute:
		return true
	case "/api/v1/auth/logout", "/api/v1/auth/update-password", VerificationRoute: // called by people who have signed in
		return false
	}
	return strings.HasPrefix(path, "/api/v1/auth/") || strings.HasPrefix(path, "/auth/")
}

// WorkQuota names whose quota of costly work a call uses: its tenant's, the person's if it is about no tenant, or the
// client site's if anyone may make it or the person's address is not verified.
func (a *Core) WorkQuota(ctx context.Context, p *Principal) string {
	switch {
	case !a.isVerified(p.Credential):
		return a.siteQuota(RequestOf(ctx))
	case p.HasBrowserKey():
		return browsersOf(a.TenantQuota(p.Tenant))
	case p.Tenant != nil:
		return a.TenantQuota(p.Tenant)
	case p.Claims.UserID != "":
		return p.Claims.UserID
	default:
		return a.siteQuota(RequestOf(ctx))
	}
}

// browsersOf names the quota of all browser keys of a tenant: they do not use that of its servers.
func browsersOf(quota string) string { return "browsers of " + quota }

// siteQuota names the quota of all clients of a site who are not known otherwise: whoever has one has many networks,
// and makes accounts at will.
func (a *Core) siteQuota(req *request) string { return "site " + a.Limiter.Site(req.received).String() }

// TenantQuota names whose quota a tenant uses: if nobody pays for it its creator's, so that many such tenants give
// nobody many quotas.
func (a *Core) TenantQuota(tenant *snapshot.Tenant) string {
	if tenant.Plan(a.Now()).Unpaid() {
		return cmp.Or(tenant.Creator(), tenant.ID())
	}
	return tenant.ID()
}

// answerQuota names whose quota of unread answers a request uses: that of a person whose address is verified, of the
// machine's tenant or, if nobody pays for that, its creator, or of anybody else's site.
func (a *Core) answerQuota(req *request) string {
	switch {
	case req.credential == nil || !a.isVerified(req.credential):
		return a.siteQuota(req)
	case req.credential.Machine != nil:
		quota := req.credential.Machine.TenantID
		if tenant, ok := a.tenantOfMachine(req.credential.Machine); ok {
			quota = a.TenantQuota(tenant)
		}
		if req.credential.HasBrowserKey() {
			return browsersOf(quota)
		}
		return quota
	default:
		return req.credential.Claims.UserID
	}
}
