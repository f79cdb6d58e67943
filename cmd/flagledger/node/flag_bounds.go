package node

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot"
)

// flagBounds are how many bytes the flags of a tenant may have together, by its plan: see events.FlagBytesAfter.
type flagBounds map[events.Plan]int

const maxFlagMiB = 1 << 20

// parseFlagMiB reads bounds in MiB such as "free=16,standard=64". Plans that it does not name keep their defaults.
func parseFlagMiB(text string) (flagBounds, error) {
	bounds := flagBounds{}
	for entry := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, number, _ := strings.Cut(entry, "=")
		plan := events.Plan(strings.TrimSpace(name))
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 1 || n > maxFlagMiB {
			return nil, fmt.Errorf("%q must be a plan, = and a whole number of MiB from 1 to %d", entry, maxFlagMiB)
		}
		if !plan.Known() {
			return nil, fmt.Errorf("%q is no plan; those are %s", plan, strings.Join(events.PlanNames(events.AnyPlan), ", "))
		}
		bounds[plan] = n << 20
	}
	return bounds, nil
}

// of tells how many bytes the flags of a tenant have, and may have on its plan at this moment.
func (b flagBounds) of(live *snapshot.Snapshot, now func() time.Time) func(tenantID string) (used, bound int) {
	return func(tenantID string) (used, bound int) {
		plan := events.FreePlan
		if tenant, ok := live.Tenant(tenantID); ok {
			used, plan = tenant.FlagBytes(), tenant.Plan(now())
		}
		if bound, set := b[plan]; set {
			return used, bound
		}
		return used, plan.Terms().TenantFlagBytes
	}
}
