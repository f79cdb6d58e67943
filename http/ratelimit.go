package http

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/limit"
)

// limit counts a request for whom identify has found, and refuses it beyond the limit. Every answer's headers show what is left.
func (a *API) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := requestOf(r.Context())
		if isWebhook(r) {
			a.limitUnsigned(w, r, next)
			return
		}
		left := a.count(r, req)
		left.Show(req.answer)
		if left.Exceeded {
			writeProblem(w, r, tooManyRequests(left, ""))
			return
		}
		if err := a.limitUnread(r.Context()); err != nil {
			writeProblem(w, r, problemOf(r.Context(), err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isWebhook reports whether a request is to the webhook.
func isWebhook(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == webhookRoute
}

// limitUnsigned counts a call of the webhook for the client's address, unless the payment provider has signed it: that is not limited. Other calls are not
// logged.
func (a *API) limitUnsigned(w http.ResponseWriter, r *http.Request, next http.Handler) {
	req := requestOf(r.Context())
	a.limiter.Peek(r).Show(req.answer)
	req.unsigned = true
	defer func() {
		if req.unsigned {
			a.limiter.Address(r)
		}
	}()
	next.ServeHTTP(w, r)
}

// tooManyRequests refuses a call for a limit. The answer shows its headers. why is empty where it is the limit of requests.
func tooManyRequests(b limit.Budget, why string) *problem {
	p := newProblem(http.StatusTooManyRequests, why)
	p.Detail += ", in " + strconv.Itoa(b.Reset) + " s"
	p.headers.Set("Retry-After", strconv.Itoa(b.Reset))
	p.exceeded = &b
	return p
}

func (a *API) count(r *http.Request, req *request) limit.Budget {
	switch {
	case signsIn(r.URL.Path):
		return a.limiter.SignIn(r)
	case req.tokenRefusal != nil:
		return a.limiter.Address(r)
	default:
		return a.countAuthenticated(r, req.credential)
	}
}

func (a *API) countAuthenticated(r *http.Request, c *credential) limit.Budget {
	tenantID, creator, plan := a.requestQuota(c, cmp.Or(tenantOfPath(r.URL.Path), header(r, tenantHeader)))
	if c.machine != nil {
		return a.limiter.Machine(creator, tenantID, plan)
	}
	best := a.bestPlan(c.claims.UserID)
	if !a.isVerified(c) {
		return a.limiter.Unverified(r, c.claims.UserID, best, tenantID, plan)
	}
	return a.limiter.Person(c.claims.UserID, best, tenantID, plan)
}

// maxPlans is how many of a person's tenants are asked for the best plan at each request: others may add people to any number.
const maxPlans = 100

// bestPlan is the plan among those of a person's first tenants that gives the most requests, and else the free one.
func (a *API) bestPlan(userID string) events.Plan {
	best, now := events.FreePlan, a.Now()
	tenants := a.Live.TenantsOf(userID)
	for _, id := range tenants[:min(len(tenants), maxPlans)] {
		if tenant, ok := a.Live.Tenant(id); ok {
			if plan := tenant.Plan(now); a.limiter.RequestsPerMinute(plan) > a.limiter.RequestsPerMinute(best) {
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
			return id
		}
	}
	return ""
}

// signsIn reports whether a path takes credentials from anyone.
func signsIn(path string) bool {
	switch path {
	case "/api/v1/oauth/token", "/oauth/token", subscribeRoute:
		return true
	case "/api/v1/auth/logout", "/api/v1/auth/update-password", verificationRoute: // called by people who have signed in
		return false
	}
	return strings.HasPrefix(path, "/api/v1/auth/") || strings.HasPrefix(path, "/auth/")
}

// limitMails does what mails an address that the client names, unless the client's network has caused too many such mails today. What is refused does not count.
func (a *API) limitMails(ctx context.Context, mail func() error) error {
	req := requestOf(ctx)
	left, giveBack := a.limiter.MailRequest(req.received)
	if left.Exceeded {
		return tooManyRequests(left, "too many mails to addresses of the client's choice were asked for from its network within a day")
	}
	err := mail()
	if isRefusal(err) {
		giveBack()
	}
	return err
}

// limitAttempts tries a secret for an account, unless too many wrong ones were tried for it lately from the same network. After very many from everywhere it first
// waits for a few seconds. It makes no difference whether the account exists.
func (a *API) limitAttempts(ctx context.Context, account string, try func() error) error {
	attempt, left, err := a.limiter.CountAttempt(ctx, account, a.limiter.Network(requestOf(ctx).received))
	if err != nil {
		return err
	}
	if left.Exceeded {
		return tooManyRequests(left, "")
	}
	err = try()
	refused, _ := errors.AsType[*problem](err)
	switch {
	case err == nil:
		attempt.Succeed()
	case commands.KindOf(err) != commands.Unauthenticated && (refused == nil || refused.Status != http.StatusUnauthorized):
		attempt.Forgive()
	}
	return err
}
