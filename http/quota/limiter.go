package quota

import (
	"net/http"
	"net/netip"
	"time"

	"flagledger/events"
)

// MaxNotifications limits the notifications to a person from one tenant, creator of free tenants or platform admin.
var MaxNotifications = table[notifications].max

// mailMinutes is for how many minutes of sign-ins a network may cause mails on a day.
const mailMinutes = 5

// SwitchesPerMinute is the rate limit of CountSwitch.
var SwitchesPerMinute = table[switches].max

// Limiter counts what callers do. It is safe for concurrent use.
type Limiter struct {
	limits   Limits
	proxies  []netip.Prefix
	now      func() time.Time
	counters [kinds]*counter
	slowed   *Queue // attempts with secrets, by account and wide network
}

// NewLimiter returns a limiter that trusts the X-Forwarded-For of proxies.
func NewLimiter(limits Limits, proxies []netip.Prefix, now func() time.Time) *Limiter {
	return &Limiter{limits: limits, proxies: proxies, now: now, counters: newCounters(), slowed: newSlowed()}
}

// CountPerson counts a person's request against the limit of the tenant's plan, and against the person's own limit, by
// the best plan among their tenants.
func (l *Limiter) CountPerson(id string, best events.Plan, tenantID string, plan events.Plan) Budget {
	return l.countBoth(personRequests, id, l.RequestsPerMinute(best), tenantID, plan)
}

// CountUnverified is CountPerson for a person with an unverified address: it also counts the request for the client
// address.
func (l *Limiter) CountUnverified(
	r *http.Request, id string, best events.Plan, tenantID string, plan events.Plan,
) Budget {
	left := l.CountAddress(r)
	if left.Exceeded {
		return left
	}
	own := l.CountPerson(id, best, tenantID, plan)
	if own.Exceeded {
		l.uncountAddress(r)
	}
	if own.Exceeded || own.Remaining < left.Remaining {
		return own
	}
	return left
}

// CountMachine counts a machine's request for its tenant. If the tenant is free, it also counts against the limit of
// all machines in the creator's free tenants.
func (l *Limiter) CountMachine(creator, tenantID string, plan events.Plan) Budget {
	if l.limits.UnlimitedServers {
		return Budget{Max: maxLimit, Remaining: maxLimit}
	}
	if !plan.Unpaid() || creator == "" {
		return l.takeUpTo(tenantRequests, tenantID, l.RequestsPerMinute(plan))
	}
	free := max(l.limits.Plans[events.FreePlan], l.limits.Plans[events.SandboxPlan])
	return l.countBoth(creatorRequests, creator, free, tenantID, plan)
}

// browserPercent is the part of a plan's requests that all browser keys of a tenant may use together.
const browserPercent = 80

// CountBrowser counts a request with a browser's evaluation key: for its tenant as CountMachine does, within a part of
// the plan's requests, so that a flood of them leaves the tenant's servers the rest, and for the client's address.
func (l *Limiter) CountBrowser(r *http.Request, creator, tenantID string, plan events.Plan) Budget {
	shared := tenantID
	if plan.Unpaid() && creator != "" {
		shared = creator
	}
	own, key := Budget{Max: l.limits.Browser, Remaining: l.limits.Browser, Reset: 60}, ""
	if address := l.Network(r); address.IsValid() { // clients with unreadable ones would share a limit
		key = tenantID + " " + address.String()
		own = l.takeUpTo(browserAddresses, key, l.limits.Browser)
	}
	if own.Exceeded {
		return own
	}
	most := max(1, l.RequestsPerMinute(plan)*browserPercent/100)
	browsers := l.takeUpTo(browserRequests, shared, most)
	if browsers.Exceeded {
		l.release(browserAddresses, key)
		return browsers
	}
	left := l.CountMachine(creator, tenantID, plan)
	if left.Exceeded {
		l.release(browserAddresses, key)
		l.release(browserRequests, shared)
		return left
	}
	for _, b := range []Budget{own, browsers} {
		if b.Remaining < left.Remaining {
			left = b
		}
	}
	return left
}

// countBoth counts a request by a key and for a tenant, or for neither if one is exceeded. It returns the smaller
// remaining budget.
func (l *Limiter) countBoth(k kind, key string, limit int, tenantID string, plan events.Plan) Budget {
	now := l.now().Unix()
	own := l.takeAt(now, k, key, limit)
	if own.Exceeded {
		return own
	}
	left := l.takeAt(now, tenantRequests, tenantID, l.RequestsPerMinute(plan))
	switch {
	case left.Exceeded:
		l.release(k, key)
		return left
	case own.Remaining < left.Remaining:
		return own
	default:
		return left
	}
}

// RequestsPerMinute returns a plan's requests a minute.
func (l *Limiter) RequestsPerMinute(plan events.Plan) int {
	if allowed, ok := l.limits.Plans[plan]; ok {
		return allowed
	}
	return l.limits.Plans[events.FreePlan]
}

// CountAddress counts a request for its client address. Unreadable addresses are not counted, as all such clients would
// share a limit.
func (l *Limiter) CountAddress(r *http.Request) Budget {
	address := l.Network(r)
	if !address.IsValid() {
		return Budget{Max: l.limits.Anonymous, Remaining: l.limits.Anonymous, Reset: 60}
	}
	return l.takeUpTo(addressRequests, address.String(), l.limits.Anonymous)
}

func (l *Limiter) uncountAddress(r *http.Request) { l.release(addressRequests, l.Network(r).String()) }

// Peek returns the budget of a request's client address without counting the request.
func (l *Limiter) Peek(r *http.Request) Budget {
	left := l.CountAddress(r)
	if !left.Exceeded && left.Remaining < left.Max {
		l.uncountAddress(r)
		left.Remaining++
	}
	return left
}

// CountSignIn counts a sign-in for its client address, against the limits of requests and of sign-ins. It returns the
// smaller remaining budget.
func (l *Limiter) CountSignIn(r *http.Request) Budget {
	left := l.CountAddress(r)
	address := l.Network(r)
	if left.Exceeded || !address.IsValid() {
		return left
	}
	if auth := l.takeUpTo(signIns, address.String(), l.limits.Auth); auth.Exceeded || auth.Remaining < left.Remaining {
		return auth
	}
	return left
}

// CountMailRequest counts a mail to an address that the client names, for the client's IPv4 address or IPv6 /48.
// release undoes it if no mail is sent.
func (l *Limiter) CountMailRequest(r *http.Request) (left Budget, release func()) {
	if !l.Network(r).IsValid() {
		return Budget{}, func() {}
	}
	from := l.Site(r).String()
	return l.takeUpTo(mails, from, mailMinutes*l.limits.Auth), func() { l.release(mails, from) }
}

// CountNotification counts a notification to a person for its sender. release undoes it if none is sent.
func (l *Limiter) CountNotification(sender, userID string) (left Budget, release func()) {
	pair := sender + "\x00" + userID
	return l.take(notifications, pair), func() { l.release(notifications, pair) }
}

// CountPaymentPage counts a page of the payment provider for a tenant, or a creator of free tenants.
func (l *Limiter) CountPaymentPage(tenant string) Budget { return l.take(paymentPages, tenant) }

// CountSwitch counts a change without a body past the daily write quota. by names the caller.
func (l *Limiter) CountSwitch(by string) Budget { return l.take(switches, by) }

// Network returns the client's IPv4 address or IPv6 /64, by which wrong secrets are counted. It returns the zero
// address if that is unreadable.
func (l *Limiter) Network(r *http.Request) netip.Addr { return clientAddress(r, l.proxies) }

// Site returns the client's IPv4 address or IPv6 /48, the most that a client usually controls. It returns the zero
// prefix if that is unreadable.
func (l *Limiter) Site(r *http.Request) netip.Prefix { return site(l.Network(r)) }

// WideNetwork returns the client's IPv4 /24 or IPv6 /48, which usually belongs to one site or provider. It returns the
// zero prefix if the address is unreadable.
func (l *Limiter) WideNetwork(r *http.Request) netip.Prefix { return wide(l.Network(r)) }
