package quota

import (
	"fmt"
	"time"

	"flagledger/events"
)

// How clients are distinguished, in docs/operate/limits.md.
var (
	PerNetwork = fmt.Sprintf("IPv4 address or IPv6 /%d", networkBits)
	PerSite    = fmt.Sprintf("IPv4 address or IPv6 /%d", siteBits)
	PerWide    = fmt.Sprintf("IPv4 /%d or IPv6 /%d", wideBits, siteBits)
)

// What is counted together, in docs/operate/limits.md: each tenant by itself, but the free tenants of a creator
// together.
const (
	PerTenantOrCreator = "tenant; free: creator"
	PerCreator         = "creator of free tenants"
)

// ListLimits lists the limits of this package. The limits of plans are in events.Plans.
func ListLimits() []events.Limit {
	defaults := Default()
	rate := func(name string, most, seconds int, per string) events.Limit {
		return events.Limit{
			Group: events.RateLimits, Name: name, Per: per, Nodes: events.EachNode, Status: 429,
			Value: fmt.Sprintf("%s in %s", events.CountText(most), inSeconds(seconds)),
		}
	}
	slowed := rate("wrong passwords and secrets", maxAccountAttempts, attemptWindow, "account")
	slowed.Status = 0
	slowed.Beyond = fmt.Sprintf("other networks wait %s; %d of each %s go on, the others 429",
		events.PeriodText(roundTime), roundDrawn, PerWide)
	counted := events.Limit{
		Group: events.MemoryLimits, Name: "counters of each rate", Max: maxWindows,
		Nodes: events.EachNode, Beyond: "every other one is forgotten",
	}
	return []events.Limit{
		rate("requests without a valid token", defaults.Anonymous, requestWindow, PerNetwork),
		rate("sign-ins and tokens", defaults.Auth, requestWindow, PerNetwork),
		rate("wrong passwords and secrets", maxAttempts, attemptWindow, "account and "+PerNetwork),
		slowed,
		{
			Group: events.RateLimits, Name: "a network counts as the account's own after a sign-in",
			Value: inSeconds(ownNetworkFor), Per: "account and " + PerNetwork, Nodes: events.EachNode,
			Beyond: "it waits as others do",
		},
		rate("sign-ups, links to sandboxes and new passwords", mailMinutes*defaults.Auth, mailRequestWindow, PerSite),
		rate("notifications to one person", MaxNotifications, notificationWindow, PerTenantOrCreator),
		rate("checkouts and portals", maxPaymentPages, paymentWindow, PerTenantOrCreator),
		rate("changes without a body, after a full day", SwitchesPerMinute, requestWindow,
			"person, or all machines of a tenant"),
		counted,
	}
}

func inSeconds(n int) string { return events.PeriodText(time.Duration(n) * time.Second) }
