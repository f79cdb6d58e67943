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
	// At most maxGuesses wrong secrets are tried for an account in guessWindow, from whatever address.
	guessWindow = 15 * 60
	maxGuesses  = 20
)

// Limiter counts requests. It may be used by many goroutines at once.
type Limiter struct {
	plans     map[events.Plan]rate
	free      rate // of plans without a limit of their own
	anonymous rate
	auth      rate
	guess     rate

	proxies []netip.Prefix
	began   time.Time
	now     func() time.Time

	tenants   *windows[string]
	addresses *windows[netip.Addr]
	signIns   *windows[netip.Addr]
	guesses   *windows[[sha256.Size]byte] // by account
}

// New returns a limiter that believes the X-Forwarded-For of proxies.
func New(limits Limits, proxies []netip.Prefix, now func() time.Time) *Limiter {
	plans := map[events.Plan]rate{}
	for plan, n := range limits.Plans {
		plans[plan] = newRate(n)
	}
	return &Limiter{
		plans: plans, free: plans[events.FreePlan], anonymous: newRate(limits.Anonymous), auth: newRate(limits.Auth), guess: newRate(maxGuesses),
		proxies: proxies, began: now(), now: now,
		tenants: newWindows[string](requestWindow), addresses: newWindows[netip.Addr](requestWindow), signIns: newWindows[netip.Addr](requestWindow),
		guesses: newWindows[[sha256.Size]byte](guessWindow),
	}
}

// second is the current second since the start.
func (l *Limiter) second() uint32 { return uint32(l.now().Sub(l.began) / time.Second) }

// Tenant counts a request for a tenant with a plan.
func (l *Limiter) Tenant(id string, plan events.Plan) Budget {
	allowed, ok := l.plans[plan]
	if !ok {
		allowed = l.free
	}
	return l.tenants.take(id, allowed, l.second())
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

// Guess counts an attempt to guess the secret of an account, whether or not there is such an account.
func (l *Limiter) Guess(account string) Budget {
	return l.guesses.take(digest(account), l.guess, l.second())
}

// GuessedRight undoes a Guess: the secret was right, or was not checked.
func (l *Limiter) GuessedRight(account string) { l.guesses.giveBack(digest(account)) }

// digest stands for the name of an account, so that none is kept.
func digest(name string) [sha256.Size]byte {
	return sha256.Sum256([]byte(name))
}
