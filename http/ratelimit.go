package http

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"flagledger/commands"
	"flagledger/events"
)

// Limits is how many requests a minute are answered. Each node counts by itself, in memory.
type Limits struct {
	Plans     map[events.Plan]int // of a tenant with that plan
	Anonymous int                 // of a client address, without a token that holds
	Auth      int                 // of those, to sign in
}

// DefaultLimits is the limits that hold where none are set.
func DefaultLimits() Limits {
	return Limits{
		Plans: map[events.Plan]int{
			events.FreePlan: 1_200, events.SandboxPlan: 1_200, "standard": 6_000, "premium": 60_000, "enhanced": 60_000, "enterprise": 600_000,
		},
		Anonymous: 300,
		Auth:      60,
	}
}

const maxLimit = 1_000_000_000

// ParseLimits reads limits such as "free=1200,anonymous=300,auth=60". Those that it does not name keep their defaults.
func ParseLimits(text string) (Limits, error) {
	limits := DefaultLimits()
	for entry := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, number, _ := strings.Cut(entry, "=")
		name = strings.TrimSpace(name)
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 1 || n > maxLimit {
			return limits, fmt.Errorf("%q must be a name, = and a whole number from 1 to %d", entry, maxLimit)
		}
		_, plan := limits.Plans[events.Plan(name)]
		switch {
		case name == "anonymous":
			limits.Anonymous = n
		case name == "auth":
			limits.Auth = n
		case plan:
			limits.Plans[events.Plan(name)] = n
		default:
			return limits, fmt.Errorf("%q is neither anonymous nor auth nor a plan, %s", name, slices.Sorted(maps.Keys(limits.Plans)))
		}
	}
	return limits, nil
}

const (
	requestWindow = 60 // seconds
	// guessWindow and maxGuesses bound how often a wrong secret can be tried for one account, from wherever it is tried.
	guessWindow = 15 * 60
	maxGuesses  = 20
)

// limiter counts requests.
type limiter struct {
	plans     map[events.Plan]rate
	free      rate // of plans that have none of their own
	anonymous rate
	auth      rate
	guess     rate

	proxies []netip.Prefix
	began   time.Time
	now     func() time.Time

	tenants   *windows[string]
	addresses *windows[netip.Addr]
	signIns   *windows[netip.Addr]
	guesses   *windows[[sha256.Size]byte]
}

func newLimiter(limits Limits, proxies []netip.Prefix) *limiter {
	plans := map[events.Plan]rate{}
	for plan, n := range limits.Plans {
		plans[plan] = newRate(n)
	}
	return &limiter{
		plans: plans, free: plans[events.FreePlan], anonymous: newRate(limits.Anonymous), auth: newRate(limits.Auth), guess: newRate(maxGuesses),
		proxies: proxies, began: time.Now(), now: time.Now,
		tenants: newWindows[string](requestWindow), addresses: newWindows[netip.Addr](requestWindow), signIns: newWindows[netip.Addr](requestWindow),
		guesses: newWindows[[sha256.Size]byte](guessWindow),
	}
}

// second is the current second since the start.
func (l *limiter) second() uint32 { return uint32(l.now().Sub(l.began) / time.Second) }

// limit finds out whose token a request bears, counts the request for that person's tenant or else for the address that it came from, and
// lets it pass as long as its limit is not exceeded. The answer's headers tell how much is left, whatever the answer.
func (a *API) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := requestOf(r.Context())
		req.credential, req.refusal = a.bearer(r)
		left := a.count(r, req)
		left.show(req.answer)
		if left.exceeded {
			writeProblem(w, r, left.problem())
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a *API) count(r *http.Request, req *request) budget {
	l := a.limiter
	now := l.second()
	signingIn := signsIn(r.URL.Path)
	if req.refusal == nil && !signingIn {
		id, plan := a.payer(req.credential, cmp.Or(tenantOfPath(r.URL.Path), r.Header.Get(tenantHeader)))
		allowed, ok := l.plans[plan]
		if !ok {
			allowed = l.free
		}
		return l.tenants.take(id, allowed, now)
	}
	address := l.client(r)
	if !address.IsValid() {
		return budget{rate: l.anonymous, remaining: l.anonymous.max, reset: requestWindow}
	}
	left := l.addresses.take(address, l.anonymous, now)
	if !signingIn || left.exceeded {
		return left
	}
	if auth := l.signIns.take(address, l.auth, now); auth.exceeded || auth.remaining < left.remaining {
		return auth
	}
	return left
}

// look tells what is left for the address of a request, and does not count it.
func (l *limiter) look(r *http.Request) budget {
	address := l.client(r)
	if !address.IsValid() {
		return budget{rate: l.anonymous, remaining: l.anonymous.max, reset: requestWindow}
	}
	left := l.addresses.take(address, l.anonymous, l.second())
	if !left.exceeded {
		l.addresses.giveBack(address)
		left.remaining++
	}
	return left
}

// payer is the tenant that a request counts for, with its plan: a machine's own; for a person the one that the request's path or header names if he is a
// member, and else the first. A person without a tenant is counted by user id.
func (a *API) payer(c *credential, named string) (id string, plan events.Plan) {
	if c.machine != nil {
		if tenant, ok := a.queries.Snapshot().Tenant(c.machine.tenantID); ok {
			plan = tenant.Plan()
		}
		return c.machine.tenantID, plan
	}
	if tenant, ok := a.queries.Snapshot().Tenant(named); ok {
		if _, member := tenant.Role(c.claims.UserID); member {
			return named, tenant.Plan()
		}
	}
	for _, id := range a.queries.Snapshot().User(c.claims.UserID).Tenants {
		if tenant, ok := a.queries.Snapshot().Tenant(id); ok {
			return id, tenant.Plan()
		}
	}
	return c.claims.UserID, events.FreePlan
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

// signsIn reports whether a path takes credentials, whoever calls it.
func signsIn(path string) bool {
	switch path {
	case "/api/v1/oauth/token", "/oauth/token":
		return true
	case "/api/v1/auth/logout", "/api/v1/auth/update-password": // which whoever has signed in calls
		return false
	}
	return strings.HasPrefix(path, "/api/v1/auth/") || strings.HasPrefix(path, "/auth/")
}

// limitGuesses tries a secret for an account, unless too many wrong ones have been tried for it lately. It makes no difference whether there is such
// an account.
func (a *API) limitGuesses(ctx context.Context, account string, try func() error) error {
	l := a.limiter
	key := sha256.Sum256([]byte(strings.ToLower(strings.TrimSpace(account))))
	left := l.guesses.take(key, l.guess, l.second())
	if left.exceeded {
		left.show(requestOf(ctx).answer)
		return left.problem()
	}
	err := try()
	refused, _ := errors.AsType[*problem](err)
	if commands.KindOf(err) != commands.Unauthenticated && (refused == nil || refused.Status != http.StatusUnauthorized) {
		l.guesses.giveBack(key)
	}
	return err
}
