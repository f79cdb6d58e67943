// Package limit counts requests in memory and says which are too many: by tenant and plan, by client address, and by account for wrong secrets.
package limit

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"time"

	"flagledger/events"
)

const (
	requestWindow = 60 // seconds
	// At most maxGuesses wrong secrets are tried for an account in guessWindow from a network. After maxAccountGuesses from all networks together, further
	// attempts wait for a turn, one a second, of which maxTurns are given out ahead.
	guessWindow       = 15 * 60
	maxGuesses        = 20
	maxAccountGuesses = 200
	maxTurns          = 5
	// ownNetworkFor is how long a network that somebody has signed in from counts as theirs, in seconds.
	ownNetworkFor = 30 * 24 * 60 * 60
)

// Limiter counts requests. It may be used by many goroutines at once.
type Limiter struct {
	plans     map[events.Plan]rate
	free      rate // of plans without a limit of their own
	anonymous rate
	auth      rate
	guess     rate
	guessAll  rate
	turn      rate
	once      rate

	proxies []netip.Prefix
	began   time.Time
	now     func() time.Time

	tenants   *windows[string]
	addresses *windows[netip.Addr]
	signIns   *windows[netip.Addr]
	people    *windows[string]
	guesses   *windows[[sha256.Size]byte] // by account and network, and by account
	turns     *windows[[sha256.Size]byte] // by account
	own       *windows[[sha256.Size]byte] // by account and network
}

// New returns a limiter that believes the X-Forwarded-For of proxies.
func New(limits Limits, proxies []netip.Prefix, now func() time.Time) *Limiter {
	plans := map[events.Plan]rate{}
	for plan, n := range limits.Plans {
		plans[plan] = newRate(n)
	}
	return &Limiter{
		plans: plans, free: plans[events.FreePlan], anonymous: newRate(limits.Anonymous), auth: newRate(limits.Auth), guess: newRate(maxGuesses),
		guessAll: newRate(maxAccountGuesses), turn: newRate(maxTurns), once: newRate(1),
		proxies: proxies, began: now(), now: now,
		tenants: newWindows[string](requestWindow), addresses: newWindows[netip.Addr](requestWindow), signIns: newWindows[netip.Addr](requestWindow),
		people: newWindows[string](requestWindow), guesses: newWindows[[sha256.Size]byte](guessWindow),
		turns: newWindows[[sha256.Size]byte](maxTurns), own: newWindows[[sha256.Size]byte](ownNetworkFor),
	}
}

// second is the current second since the start.
func (l *Limiter) second() uint32 { return uint32(l.now().Sub(l.began) / time.Second) }

// Tenant counts a request for a tenant with a plan.
func (l *Limiter) Tenant(id string, plan events.Plan) Budget {
	return l.tenants.take(id, l.ofPlan(plan), l.second())
}

// Person counts a request of a person for a tenant: against the limit of the tenant's plan, and against one of the person's own, that of the best plan among
// their tenants. It returns the budget of which less is left. A request that one of them refuses counts for neither.
func (l *Limiter) Person(id string, best events.Plan, tenantID string, plan events.Plan) Budget {
	now := l.second()
	own := l.people.take(id, l.ofPlan(best), now)
	if own.Exceeded {
		return own
	}
	left := l.tenants.take(tenantID, l.ofPlan(plan), now)
	switch {
	case left.Exceeded:
		l.people.giveBack(id)
		return left
	case own.Remaining < left.Remaining:
		return own
	default:
		return left
	}
}

// RequestsPerMinute is how many requests a minute a plan gives.
func (l *Limiter) RequestsPerMinute(plan events.Plan) int { return l.ofPlan(plan).max }

func (l *Limiter) ofPlan(plan events.Plan) rate {
	if allowed, ok := l.plans[plan]; ok {
		return allowed
	}
	return l.free
}

// Address counts a request for its client address.
func (l *Limiter) Address(r *http.Request) Budget {
	return l.address(clientAddress(r, l.proxies), l.second())
}

// SignIn counts a request that signs in for its client address: against the limit of all requests and against that of sign-ins. It returns the budget
// of which less is left.
func (l *Limiter) SignIn(r *http.Request) Budget {
	address, now := clientAddress(r, l.proxies), l.second()
	left := l.address(address, now)
	if left.Exceeded || !address.IsValid() {
		return left
	}
	if auth := l.signIns.take(address, l.auth, now); auth.Exceeded || auth.Remaining < left.Remaining {
		return auth
	}
	return left
}

// Peek is the budget of a request's client address. It does not count the request.
func (l *Limiter) Peek(r *http.Request) Budget {
	address := clientAddress(r, l.proxies)
	left := l.address(address, l.second())
	if !left.Exceeded && address.IsValid() {
		l.addresses.giveBack(address)
		left.Remaining++
	}
	return left
}

// address counts a request of an address. One that cannot be read is not counted: all such clients would share a limit.
func (l *Limiter) address(address netip.Addr, now uint32) Budget {
	if !address.IsValid() {
		return Budget{rate: l.anonymous, Remaining: l.anonymous.max, Reset: requestWindow}
	}
	return l.addresses.take(address, l.anonymous, now)
}

// Network is what wrong secrets are counted by: an IPv4 address, or the /64 of an IPv6 one. It is the zero address where that cannot be read.
func (l *Limiter) Network(r *http.Request) netip.Addr { return clientAddress(r, l.proxies) }

// Guess counts an attempt to guess the secret of an account from a network, whether or not there is such an account. It is refused where the network has
// tried too many. Where all networks together have, it must wait for its turn, and is refused where too many wait. The first attempt of a network does
// not wait for those of others that have tried before, and a network that the account was signed in from need not wait.
func (l *Limiter) Guess(account string, network netip.Addr) (left Budget, wait time.Duration) {
	now, pair := l.second(), digest(account, network.String())
	left = l.guesses.take(pair, l.guess, now)
	if left.Exceeded || !l.guesses.take(digest(account, ""), l.guessAll, now).Exceeded || l.own.holds(pair, now) {
		return left, 0
	}
	queue := "others"
	if left.Remaining == maxGuesses-1 {
		queue = "first"
	}
	turn := l.turns.take(digest(account, queue), l.turn, now)
	if turn.Exceeded {
		l.guesses.giveBack(pair)
		return turn, 0
	}
	return left, time.Duration(max(turn.Reset-turn.Remaining-1, 0)) * time.Second // turns are a second apart, from the beginning of their window
}

// Unguess undoes a Guess: the secret was not wrong.
func (l *Limiter) Unguess(account string, network netip.Addr) {
	l.guesses.giveBack(digest(account, network.String()))
	l.guesses.giveBack(digest(account, ""))
}

// GuessedRight undoes a Guess whose secret was right, and notes that the network is one of the account's own.
func (l *Limiter) GuessedRight(account string, network netip.Addr) {
	l.Unguess(account, network)
	l.own.take(digest(account, network.String()), l.once, l.second())
}

// digest stands for the name of an account and what it is counted by, so that none is kept.
func digest(account, by string) [sha256.Size]byte {
	return sha256.Sum256([]byte(account + "\x00" + by))
}
