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
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

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

// ParseProxies reads the addresses and networks of proxies, separated by commas.
func ParseProxies(text string) (proxies []netip.Prefix, err error) {
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		network, err := netip.ParsePrefix(entry)
		if address, single := netip.ParseAddr(entry); single == nil {
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q must be an address or a network, such as 10.0.0.0/8", entry)
		}
		proxies = append(proxies, network)
	}
	return proxies, nil
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
// member, and else his first. One who has none pays for himself.
func (a *API) payer(c *credential, named string) (id string, plan events.Plan) {
	if c.machine != nil {
		if tenant, ok := a.queries.Live().Tenant(c.machine.tenantID); ok {
			plan = tenant.Plan()
		}
		return c.machine.tenantID, plan
	}
	if tenant, ok := a.queries.Live().Tenant(named); ok {
		if _, member := tenant.Role(c.claims.UserID); member {
			return named, tenant.Plan()
		}
	}
	for _, id := range a.queries.Live().User(c.claims.UserID).Tenants {
		if tenant, ok := a.queries.Live().Tenant(id); ok {
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

// client is the address that a request is counted for: that of the connection, or, where a trusted proxy holds that, the right-most one in
// X-Forwarded-For that is no proxy's. The zero address stands for what cannot be read.
func (l *limiter) client(r *http.Request) netip.Addr {
	address := parseAddress(r.RemoteAddr)
	for i := len(r.Header["X-Forwarded-For"]) - 1; i >= 0; i-- {
		list := r.Header["X-Forwarded-For"][i]
		for list != "" && l.trusts(address) {
			comma := strings.LastIndexByte(list, ',')
			further := parseAddress(strings.TrimSpace(list[comma+1:]))
			if !further.IsValid() {
				return network(address)
			}
			address, list = further, list[:max(comma, 0)]
		}
	}
	return network(address)
}

func (l *limiter) trusts(address netip.Addr) bool {
	return slices.ContainsFunc(l.proxies, func(p netip.Prefix) bool { return p.Contains(address) })
}

// parseAddress reads an address with a port or without.
func parseAddress(text string) netip.Addr {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone("")
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap().WithZone("")
}

// network is the address itself in IPv4, and its /64 in IPv6, which one client has for itself.
func network(address netip.Addr) netip.Addr {
	if address.Is6() {
		return netip.PrefixFrom(address, 64).Masked().Addr()
	}
	return address
}

// guard tries a secret for an account, unless too many wrong ones have been tried for it lately. It makes no difference whether there is such
// an account.
func (a *API) guard(ctx context.Context, account string, try func() error) error {
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

// rate is how much is allowed in a window, also as a header.
type rate struct {
	max    int
	header []string
}

func newRate(n int) rate { return rate{n, []string{strconv.Itoa(n)}} }

// budget is what is left of a rate in its window.
type budget struct {
	rate
	remaining int
	reset     int // seconds left of the window, at least 1
	exceeded  bool
}

// show writes a budget into the headers of an answer, in the spelling of the interface.
func (b budget) show(h http.Header) {
	values := &[2]string{strconv.Itoa(b.remaining), strconv.Itoa(b.reset)}
	h["RateLimit-Limit"], h["RateLimit-Remaining"], h["RateLimit-Reset"] = b.header, values[0:1:1], values[1:2:2]
}

func (b budget) problem() *problem {
	p := newProblem(http.StatusTooManyRequests, "the rate limit is exceeded; try again later, in "+strconv.Itoa(b.reset)+" s")
	p.headers.Set("Retry-After", strconv.Itoa(b.reset))
	return p
}

// windows counts by key, each in windows of its own that begin with its first request.
type windows[K comparable] struct {
	seconds  uint32
	byKey    *xsync.Map[K, *window]
	sweeping sync.Mutex
}

// maxWindows bounds how many keys are counted at once: some 10 MB.
const maxWindows = 100_000

func newWindows[K comparable](seconds uint32) *windows[K] {
	return &windows[K]{seconds: seconds, byKey: xsync.NewMap[K, *window]()}
}

// take counts one more, unless the limit is reached.
func (ws *windows[K]) take(key K, allowed rate, now uint32) budget {
	w, ok := ws.byKey.Load(key)
	if !ok {
		if ws.byKey.Size() >= maxWindows {
			ws.sweep(now)
		}
		w, _ = ws.byKey.LoadOrStore(key, &window{})
	}
	return w.take(allowed, now, ws.seconds)
}

// giveBack undoes a take of just now.
func (ws *windows[K]) giveBack(key K) {
	if w, ok := ws.byKey.Load(key); ok {
		w.giveBack()
	}
}

// sweep drops the windows that are over. Where most are not, all begin anew: more clients than can be counted are let pass.
func (ws *windows[K]) sweep(now uint32) {
	if !ws.sweeping.TryLock() {
		return
	}
	defer ws.sweeping.Unlock()
	ws.byKey.DeleteMatching(func(_ K, w *window) (bool, bool) {
		began, _ := split(w.state.Load())
		return now-began >= ws.seconds, false
	})
	if ws.byKey.Size() > maxWindows/2 {
		ws.byKey.Clear()
	}
}

// window is the second in which a window began, and how many it has counted, in one word.
type window struct{ state atomic.Uint64 }

func split(state uint64) (began, count uint32) { return uint32(state >> 32), uint32(state) }

func (w *window) take(allowed rate, now, seconds uint32) budget {
	for {
		state := w.state.Load()
		began, count := split(state)
		switch {
		case count == 0 || int32(now-began) >= int32(seconds):
			began, count = now, 0
		case int32(now-began) < 0: // another request looked at the clock later and was here first
			now = began
		}
		b := budget{rate: allowed, reset: int(began + seconds - now)}
		if int(count) >= allowed.max {
			b.exceeded = true
			return b
		}
		if w.state.CompareAndSwap(state, uint64(began)<<32|uint64(count+1)) {
			b.remaining = allowed.max - int(count) - 1
			return b
		}
	}
}

func (w *window) giveBack() {
	for {
		state := w.state.Load()
		if _, count := split(state); count == 0 || w.state.CompareAndSwap(state, state-1) {
			return
		}
	}
}
