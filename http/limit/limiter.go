// Package limit counts requests in memory and says which are too many: by tenant and plan, by client address, and by
// account for wrong secrets.
package limit

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/netip"
	"time"

	"flagledger/events"
)

// SwitchesPerMinute is how many changes CountSwitch lets through a minute.
const SwitchesPerMinute = 10

const (
	requestWindow = 60 // seconds
	// A network causes mails to addresses of its choice at most as often in mailRequestWindow as it may sign in within
	// mailMinutes.
	mailRequestWindow = 24 * 60 * 60
	mailMinutes       = 5
	// At most maxAttempts wrong secrets are tried for an account in attemptWindow from a network. After maxAccountAttempts
	// from all networks together, further ones wait in rounds.
	attemptWindow = 15 * 60
	// maxPaymentPages is how many pages of the payment provider a tenant, or a creator of unpaid ones, opens in a
	// paymentWindow.
	maxPaymentPages = 20
	paymentWindow   = 60 * 60
	// MaxNotifications is how many notifications a person is sent by one tenant, by a creator of unpaid ones or by a
	// person of the platform, in a notificationWindow.
	MaxNotifications   = 200
	notificationWindow = 24 * 60 * 60
	maxAttempts        = 20
	maxAccountAttempts = 200
	// ownNetworkFor is how long a network that somebody has signed in from counts as theirs, in seconds.
	ownNetworkFor = 30 * 24 * 60 * 60
)

// Limiter counts requests. It may be used by many goroutines at once.
type Limiter struct {
	plans     map[events.Plan]rate
	free      rate // of plans without a limit of their own
	unpaid    rate // of the machines of a creator's tenants that pay nothing
	anonymous rate
	auth      rate
	mailRate  rate

	networkAttemptRate rate // attempts with a secret for an account, from one network
	accountAttemptRate rate // from all networks together
	roundRate          rate // attempts that go on from one round
	markRate           rate // 1: a network is noted as the account's own
	switchRate         rate
	paymentRate        rate // pages of the payment provider
	notificationRate   rate

	proxies []netip.Prefix
	began   time.Time
	now     func() time.Time

	tenants   *windows[string]
	addresses *windows[netip.Addr]
	signIns   *windows[netip.Addr]
	mails     *windows[netip.Prefix]
	people    *windows[string]
	creators  *windows[string] // of tenants that pay nothing
	switches  *windows[string]
	payments  *windows[string] // by tenant, or creator of tenants that pay nothing
	// notifications are counted by who sends them and who gets them.
	notifications *windows[[2]string]

	attemptCounts *windows[[sha256.Size]byte] // by account and network, and by account
	// ownNetworks holds the networks that an account was signed in from: by account and network.
	ownNetworks *windows[[sha256.Size]byte]
	slowed      *rounds // by account and wide network
}

// New returns a limiter that believes the X-Forwarded-For of proxies.
func New(limits Limits, proxies []netip.Prefix, now func() time.Time) *Limiter {
	plans := map[events.Plan]rate{}
	for plan, n := range limits.Plans {
		plans[plan] = newRate(n)
	}
	unpaid := plans[events.FreePlan]
	if sandbox := plans[events.SandboxPlan]; sandbox.max > unpaid.max {
		unpaid = sandbox
	}
	return &Limiter{
		plans:              plans,
		unpaid:             unpaid,
		free:               plans[events.FreePlan],
		anonymous:          newRate(limits.Anonymous),
		auth:               newRate(limits.Auth),
		mailRate:           newRate(mailMinutes * limits.Auth),
		networkAttemptRate: newRate(maxAttempts),
		accountAttemptRate: newRate(maxAccountAttempts),
		roundRate:          newRate(roundDrawn),
		markRate:           newRate(1),
		switchRate:         newRate(SwitchesPerMinute),
		paymentRate:        newRate(maxPaymentPages),
		notificationRate:   newRate(MaxNotifications),
		proxies:            proxies,
		began:              now(),
		now:                now,
		tenants:            newWindows[string](requestWindow),
		addresses:          newWindows[netip.Addr](requestWindow),
		signIns:            newWindows[netip.Addr](requestWindow),
		mails:              newWindows[netip.Prefix](mailRequestWindow),
		people:             newWindows[string](requestWindow),
		creators:           newWindows[string](requestWindow),
		switches:           newWindows[string](requestWindow),
		payments:           newWindows[string](paymentWindow),
		notifications:      newWindows[[2]string](notificationWindow),
		attemptCounts:      newWindows[[sha256.Size]byte](attemptWindow),
		ownNetworks:        newWindows[[sha256.Size]byte](ownNetworkFor),
		slowed:             newRounds(),
	}
}

// second is the current second since the start.
func (l *Limiter) second() uint32 { return uint32(l.now().Sub(l.began) / time.Second) }

// CountPerson counts a request of a person for a tenant: against the limit of the tenant's plan, and against one of the
// person's own, by the best plan among their tenants.
func (l *Limiter) CountPerson(id string, best events.Plan, tenantID string, plan events.Plan) Budget {
	return l.countBoth(l.people, id, l.ofPlan(best), tenantID, plan)
}

// CountUnverified is CountPerson for a person whose address is not verified: it counts the request for the client
// address as well.
func (l *Limiter) CountUnverified(
	r *http.Request, id string, best events.Plan, tenantID string, plan events.Plan,
) Budget {
	address := clientAddress(r, l.proxies)
	left := l.countAddress(address, l.second())
	if left.Exceeded {
		return left
	}
	own := l.CountPerson(id, best, tenantID, plan)
	if own.Exceeded && address.IsValid() {
		l.addresses.giveBack(address)
	}
	if own.Exceeded || own.Remaining < left.Remaining {
		return own
	}
	return left
}

// CountMachine counts a request of a machine for its tenant. Where the plan is not paid for, it counts as well against
// a limit of all machines together in such tenants of the same creator.
func (l *Limiter) CountMachine(creator, tenantID string, plan events.Plan) Budget {
	if !plan.Unpaid() || creator == "" {
		return l.tenants.take(tenantID, l.ofPlan(plan), l.second())
	}
	return l.countBoth(l.creators, creator, l.unpaid, tenantID, plan)
}

// countBoth counts a request by a key and for a tenant, or for neither if one refuses it. It returns the budget of
// which less is left.
func (l *Limiter) countBoth(by *windows[string], key string, allowed rate, tenantID string, plan events.Plan) Budget {
	now := l.second()
	own := by.take(key, allowed, now)
	if own.Exceeded {
		return own
	}
	left := l.tenants.take(tenantID, l.ofPlan(plan), now)
	switch {
	case left.Exceeded:
		by.giveBack(key)
		return left
	case own.Remaining < left.Remaining:
		return own
	default:
		return left
	}
}

// CountSwitch counts a change without a body by whoever makes it, where it is one of few that are still made today.
func (l *Limiter) CountSwitch(by string) Budget {
	return l.switches.take(by, l.switchRate, l.second())
}

// RequestsPerMinute is how many requests a minute a plan gives.
func (l *Limiter) RequestsPerMinute(plan events.Plan) int { return l.ofPlan(plan).max }

func (l *Limiter) ofPlan(plan events.Plan) rate {
	if allowed, ok := l.plans[plan]; ok {
		return allowed
	}
	return l.free
}

// CountAddress counts a request for its client address.
func (l *Limiter) CountAddress(r *http.Request) Budget {
	return l.countAddress(clientAddress(r, l.proxies), l.second())
}

// CountSignIn counts a request that signs in for its client address: against the limit of all requests and against that
// of sign-ins. It returns the budget of which less is left.
func (l *Limiter) CountSignIn(r *http.Request) Budget {
	address, now := clientAddress(r, l.proxies), l.second()
	left := l.countAddress(address, now)
	if left.Exceeded || !address.IsValid() {
		return left
	}
	if auth := l.signIns.take(address, l.auth, now); auth.Exceeded || auth.Remaining < left.Remaining {
		return auth
	}
	return left
}

// CountMailRequest counts a request for a mail to an address that the client names, for the client's IPv4 address or
// IPv6 /48. giveBack undoes it, where no mail goes out.
func (l *Limiter) CountMailRequest(r *http.Request) (left Budget, giveBack func()) {
	address := clientAddress(r, l.proxies)
	if !address.IsValid() {
		return Budget{rate: l.mailRate, Remaining: l.mailRate.max, Reset: mailRequestWindow}, func() {}
	}
	from := site(address)
	return l.mails.take(from, l.mailRate, l.second()), func() { l.mails.giveBack(from) }
}

// CountPaymentPage counts a page of the payment provider for whose quota it is.
func (l *Limiter) CountPaymentPage(quota string) Budget {
	return l.payments.take(quota, l.paymentRate, l.second())
}

// CountNotification counts a notification of a person for whose quota it is. giveBack undoes it, where none is sent.
func (l *Limiter) CountNotification(quota, userID string) (left Budget, giveBack func()) {
	pair := [2]string{quota, userID}
	return l.notifications.take(pair, l.notificationRate, l.second()), func() { l.notifications.giveBack(pair) }
}

// Peek is the budget of a request's client address. It does not count the request.
func (l *Limiter) Peek(r *http.Request) Budget {
	address := clientAddress(r, l.proxies)
	left := l.countAddress(address, l.second())
	if !left.Exceeded && address.IsValid() {
		l.addresses.giveBack(address)
		left.Remaining++
	}
	return left
}

// countAddress counts a request of an address. One that cannot be read is not counted: all such clients would share a
// limit.
func (l *Limiter) countAddress(address netip.Addr, now uint32) Budget {
	if !address.IsValid() {
		return Budget{rate: l.anonymous, Remaining: l.anonymous.max, Reset: requestWindow}
	}
	return l.addresses.take(address, l.anonymous, now)
}

// Network is what wrong secrets are counted by: an IPv4 address, or the /64 of an IPv6 one. It is the zero address
// where that cannot be read.
func (l *Limiter) Network(r *http.Request) netip.Addr { return clientAddress(r, l.proxies) }

// Site is an IPv4 address, or the /48 of an IPv6 one: all that a client can have who chooses among many networks. It is
// the zero prefix where the address cannot be read.
func (l *Limiter) Site(r *http.Request) netip.Prefix { return site(clientAddress(r, l.proxies)) }

// WideNetwork is what usually belongs to one site or provider: the /24 of a client's IPv4 address, the /48 of an IPv6
// one. It is the zero prefix where the address cannot be read.
func (l *Limiter) WideNetwork(r *http.Request) netip.Prefix { return wide(clientAddress(r, l.proxies)) }

// Attempt is an attempt with a secret for an account from a network.
type Attempt struct {
	limiter *Limiter
	pair    [sha256.Size]byte // account and network
	account [sha256.Size]byte
	slowed  bool // the account's count is full, without this attempt
}

// CountAttempt counts an attempt with a secret, whether or not the account exists. If too many came from the network,
// it is refused: its budget is exceeded, and it does not count.
//
// If too many came from all networks, one from a network that the account was not signed in from waits for the end of a
// round, which lets a few of each wide network go on. The error is that of ctx.
func (l *Limiter) CountAttempt(ctx context.Context, account string, network netip.Addr) (*Attempt, Budget, error) {
	now := l.second()
	a := &Attempt{limiter: l, pair: digest(account, network.String()), account: digest(account, "")}
	left := l.attemptCounts.take(a.pair, l.networkAttemptRate, now)
	if left.Exceeded {
		return nil, left, nil
	}
	a.slowed = l.attemptCounts.take(a.account, l.accountAttemptRate, now).Exceeded
	if !a.slowed || l.ownNetworks.holds(a.pair, now) {
		return a, left, nil
	}
	drawn, err := l.slowed.wait(ctx, digest(account, wide(network).String()))
	if drawn {
		return a, left, nil
	}
	l.attemptCounts.giveBack(a.pair)
	return nil, Budget{rate: l.roundRate, Reset: int(roundTime / time.Second), Exceeded: true}, err
}

// Forgive takes the attempt back: its secret was not wrong.
func (a *Attempt) Forgive() {
	a.limiter.attemptCounts.giveBack(a.pair)
	if !a.slowed {
		a.limiter.attemptCounts.giveBack(a.account)
	}
}

// Succeed takes the attempt back, and notes that the network is one of the account's own.
func (a *Attempt) Succeed() {
	a.Forgive()
	a.limiter.ownNetworks.take(a.pair, a.limiter.markRate, a.limiter.second())
}

// digest stands for the name of an account and what it is counted by, so that none is kept.
func digest(account, by string) [sha256.Size]byte {
	return sha256.Sum256([]byte(account + "\x00" + by))
}
