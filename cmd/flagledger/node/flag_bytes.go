package node

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot"
)

// flagBounds are how many bytes the flags of a tenant may have together, by its plan: see state.Flag.Bytes.
type flagBounds map[events.Plan]int

const maxFlagMiB = 1 << 20

// parseFlagMiB reads bounds in MiB such as "free=16,standard=64". Plans that it does not name keep their defaults.
func parseFlagMiB(text string) (flagBounds, error) {
	bounds := flagBounds{}
	for entry := range events.SettingEntries(text) {
		plan := events.Plan(entry.Name)
		n, err := strconv.Atoi(entry.Value)
		if err != nil || n < 1 || n > maxFlagMiB {
			return nil, fmt.Errorf("%q must be a plan, = and a whole number of MiB from 1 to %d", entry.Text, maxFlagMiB)
		}
		if !plan.Known() {
			return nil, fmt.Errorf("%q is no plan; those are %s", plan, strings.Join(events.PlanNames(events.AnyPlan), ", "))
		}
		bounds[plan] = n << 20
	}
	return bounds, nil
}

// tenantBytes tells how many bytes the flags of a tenant have, and may have on its plan at this moment.
func (b flagBounds) tenantBytes(
	snapshot *snapshot.Snapshot, now func() time.Time,
) func(tenantID string) (used, bound int) {
	return func(tenantID string) (used, bound int) {
		plan := events.FreePlan
		if tenant, ok := snapshot.Tenant(tenantID); ok {
			used, plan = tenant.FlagBytes(), tenant.Plan(now())
		}
		return used, b.perTenant(plan)
	}
}

// perTenant is how many bytes the flags of one tenant on a plan may have.
func (b flagBounds) perTenant(plan events.Plan) int {
	if bound, set := b[plan]; set {
		return bound
	}
	return plan.Terms().TenantFlagBytes
}

const unpaidFactor = 4 // all unpaid tenants of one creator together may have this many times what one may

// unpaidBytes tells how many bytes the flags of all tenants have that a person created and pays nothing for, and how
// many they may have.
//
// No tenant counts with more than one may have: one whose paid plan has ended does not keep the others from growing.
func (b flagBounds) unpaidBytes(
	snapshot *snapshot.Snapshot, now func() time.Time,
) func(creator string) (used, bound int) {
	each := max(b.perTenant(events.FreePlan), b.perTenant(events.SandboxPlan))
	return func(creator string) (used, bound int) {
		return snapshot.UnpaidFlagBytes(creator, each, now()), unpaidFactor * each
	}
}

// unpaidCreator tells who created a tenant that pays nothing; it is empty for any other tenant.
func unpaidCreator(snapshot *snapshot.Snapshot, now func() time.Time) func(tenantID string) string {
	return func(tenantID string) string {
		tenant, ok := snapshot.Tenant(tenantID)
		if !ok || !tenant.Plan(now()).Unpaid() {
			return ""
		}
		return tenant.Creator()
	}
}
