package quota

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"flagledger/events"
)

// Limits holds the requests a minute that are answered. Each node counts separately, in memory.
type Limits struct {
	Plans     map[events.Plan]int // per tenant, by plan
	Anonymous int                 // per client address, without a valid token
	Auth      int                 // sign-ins among them
	Browser   int                 // per client address, with the browser keys of a tenant
	// UnlimitedServers does not limit machines: an edge serves its own.
	UnlimitedServers bool
}

// Default returns the default limits.
func Default() Limits {
	limits := Limits{Plans: map[events.Plan]int{}, Anonymous: table[addressRequests].max, Auth: table[signIns].max,
		Browser: table[browserAddresses].max}
	for _, terms := range events.Plans {
		limits.Plans[terms.Plan] = terms.RequestsPerMinute
	}
	return limits
}

const maxLimit = 1_000_000_000

// Parse reads limits such as "free=1200,anonymous=300,auth=60,browser=300". Others have their defaults.
func Parse(text string) (Limits, error) {
	limits := Default()
	for entry := range events.SettingEntries(text) {
		name := entry.Name
		n, err := strconv.Atoi(entry.Value)
		if err != nil || n < 1 || n > maxLimit {
			return limits, fmt.Errorf("%q must be a name, = and a whole number from 1 to %d", entry.Text, maxLimit)
		}
		_, plan := limits.Plans[events.Plan(name)]
		switch {
		case name == "anonymous":
			limits.Anonymous = n
		case name == "auth":
			limits.Auth = n
		case name == "browser":
			limits.Browser = n
		case plan:
			limits.Plans[events.Plan(name)] = n
		default:
			return limits, fmt.Errorf("%q is neither anonymous nor auth nor browser nor a plan, %s", name,
				slices.Sorted(maps.Keys(limits.Plans)))
		}
	}
	return limits, nil
}
