package quota

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/netip"
	"time"

	"flagledger/events"
)

// SwitchesPerMinute is the rate limit of CountSwitch.
const SwitchesPerMinute = 10

const (
	requestWindow = 60 // seconds
	// A network may cause as many mails to addresses of its choice in mailRequestWindow as it may sign in within
	// mailMinutes.
	mailRequestWindow = 24 * 60 * 60
	mailMinutes       = 5
	// A network may try maxAttempts wrong secrets for an account in attemptWindow. After maxAccountAttempts from all
	// networks together, further attempts wait in rounds.
	attemptWindow = 15 * 60
	// maxPaymentPages limits the payment pages that a tenant, or a creator of free tenants, opens in a paymentWindow.
	maxPaymentPages = 20
	paymentWindow   = 60 * 60
	// MaxNotifications limits the notifications to a person from one tenant, creator of free tenants or platform admin, in
	// a notificationWindow.
	MaxNotifications   = 200
	notificationWindow = 24 * 60 * 60
	maxAttempts        = 20
	maxAccountAttempts = 200
	// ownNetworkFor is how long a network counts as the account's own after a sign-in, in seconds.
	ownNetworkFor = 30 * 24 * 60 * 60
)

// Limiter counts requests. It is safe for concurrent use.
type Limiter struct {
	plans     map[events.Plan]rate
	free      rate // of plans without a limit of their own
	unpaid    rate // of the machines of a creator's free tenants
	anonymous rate
	auth      rate
	mailRate  rate

	networkAttemptRate rate // attempts with a secret for an account, from one network
	accountAttemptRate rate // from all networks together
	roundRate          rate // attempts that one round admits
	markRate           rate // 1: marks a network as the account's own
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
	creators  *windows[string] // of free tenants
	switches  *windows[string]
	payments  *windows[string] // by tenant, or creator of free tenants
	// notifications are counted by sender and recipient.
	notifications *windows[[2]string]

	attemptCounts *windows[[sha256.Size]byte] // by account and network, and by account
	// ownNetworks holds the networks of an account's sign-ins, by account and network.
	ownNetworks *windows[[sha256.Size]byte]
	slowed      *rounds // by account and wide network
}

// NewLimiter returns a limiter that trusts the X-Forwarded-For of proxies.
func NewLimiter(limits Limits, proxies []netip.Prefix, now func() time.Time) *Limiter {
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

// second returns the seconds since the start.
func (l *Limiter) second() uint32 { return uint32(l.now().Sub(l.began) / time.Second) }

// CountPerson counts a person's request against the limit of the tenant's plan, and against the person's own limit, by
// the best plan among their tenants.
func (l *Limiter) CountPerson(id string, best events.Plan, tenantID string, plan events.Plan) Budget {
	return l.countBoth(l.people, id, l.ofPlan(best), tenantID, plan)
}

// CountUnverified is CountPerson for a person with an unverified address: it also counts the request for the client
// address.
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

// CountMachine counts a machine's request for its tenant. If the tenant is free, it also counts against the limit of
// all machines in the creator's free tenants.
func (l *Limiter) CountMachine(creator, tenantID string, plan events.Plan) Budget {
	if !plan.Unpaid() || creator == "" {
		return l.tenants.take(tenantID, l.ofPlan(plan), l.second())
	}
	return l.countBoth(l.creators, creator, l.unpaid, tenantID, plan)
}

// countBoth counts a request by a key and for a tenant, or for neither if one is exceeded. It returns the smaller
// remaining budget.
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

// CountSwitch counts a change without a body past the daily write quota. by names the caller.
func (l *Limiter) CountSwitch(by string) Budget {
	return l.switches.take(by, l.switchRate, l.second())
}

// RequestsPerMinute returns a plan's requests a minute.
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

// CountSignIn counts a sign-in for its client address, against the limits of requests and of sign-ins. It returns the
// smaller remaining budget.
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

// CountMailRequest counts a mail to an address that the client names, for the client's IPv4 address or IPv6 /48.
// giveBack undoes it if no mail is sent.
func (l *Limiter) CountMailRequest(r *http.Request) (left Budget, giveBack func()) {
	address := clientAddress(r, l.proxies)
	if !address.IsValid() {
		return Budget{rate: l.mailRate, Remaining: l.mailRate.max, Reset: mailRequestWindow}, func() {}
	}
	from := site(address)
	return l.mails.take(from, l.mailRate, l.second()), func() { l.mails.giveBack(from) }
}

// CountPaymentPage counts a page of the payment provider for the owner of a quota.
func (l *Limiter) CountPaymentPage(quota string) Budget {
	return l.payments.take(quota, l.paymentRate, l.second())
}

// CountNotification counts a notification to a person for the owner of a quota. giveBack undoes it if none is sent.
func (l *Limiter) CountNotification(quota, userID string) (left Budget, giveBack func()) {
	pair := [2]string{quota, userID}
	return l.notifications.take(pair, l.notificationRate, l.second()), func() { l.notifications.giveBack(pair) }
}

// Peek returns the budget of a request's client address without counting the request.
func (l *Limiter) Peek(r *http.Request) Budget {
	address := clientAddress(r, l.proxies)
	left := l.countAddress(address, l.second())
	if !left.Exceeded && address.IsValid() {
		l.addresses.giveBack(address)
		left.Remaining++
	}
	return left
}

// countAddress counts a request of an address. Unreadable addresses are not counted, as all such clients would share a
// limit.
func (l *Limiter) countAddress(address netip.Addr, now uint32) Budget {
	if !address.IsValid() {
		return Budget{rate: l.anonymous, Remaining: l.anonymous.max, Reset: requestWindow}
	}
	return l.addresses.take(address, l.anonymous, now)
}

// Network returns the client's IPv4 address or IPv6 /64, by which wrong secrets are counted. It returns the zero
// address if that is unreadable.
func (l *Limiter) Network(r *http.Request) netip.Addr { return clientAddress(r, l.proxies) }

// Site returns the client's IPv4 address or IPv6 /48, the most that a client usually controls. It returns the zero
// prefix if that is unreadable.
func (l *Limiter) Site(r *http.Request) netip.Prefix { return site(clientAddress(r, l.proxies)) }

// WideNetwork returns the client's IPv4 /24 or IPv6 /48, which usually belongs to one site or provider. It returns the
// zero prefix if the address is unreadable.
func (l *Limiter) WideNetwork(r *http.Request) netip.Prefix { return wide(clientAddress(r, l.proxies)) }

// Attempt is an attempt to use a secret for an account from a network.
type Attempt struct {
	limiter *Limiter
	pair    [sha256.Size]byte // account and network
	account [sha256.Size]byte
	slowed  bool // the account's count was full before this attempt
}

// CountAttempt counts an attempt with a secret, whether or not the account exists. If the network's budget is exceeded,
// it returns that and does not count.
//
// After too many from all networks, attempts from networks other than the account's own wait for a round, which admits
// a few per wide network. The error is ctx's.
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

// Forgive uncounts the attempt: its secret was not wrong.
func (a *Attempt) Forgive() {
	a.limiter.attemptCounts.giveBack(a.pair)
	if !a.slowed {
		a.limiter.attemptCounts.giveBack(a.account)
	}
}

// Succeed uncounts the attempt and marks the network as the account's own.
func (a *Attempt) Succeed() {
	a.Forgive()
	a.limiter.ownNetworks.take(a.pair, a.limiter.markRate, a.limiter.second())
}

// digest hashes an account's name and what it is counted by, so that memory holds neither.
func digest(account, by string) [sha256.Size]byte {
	return sha256.Sum256([]byte(account + "\x00" + by))
}
