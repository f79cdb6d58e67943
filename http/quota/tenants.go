package quota

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/projections/snapshot"
)

// FlagBytes is how many bytes the flags of a tenant may have together, for plans that do not have their own default:
// see state.Flag.Bytes.
type FlagBytes map[events.Plan]int

const (
	maxFlagMiB = 1 << 20
	// freeFactor is how many times as much all free tenants of a creator together may have as one.
	freeFactor = 4
	// dailyFactor is how many times the bytes of its flags a tenant may write a day.
	dailyFactor = 8
	// SwitchesPercent is how much of a day's bytes may be written until changes without a body are few a minute.
	SwitchesPercent = 125
)

// ParseFlagMiB reads limits in MiB such as "free=16,standard=64". Plans that it does not name keep their defaults.
func ParseFlagMiB(text string) (FlagBytes, error) {
	limits := FlagBytes{}
	for entry := range events.SettingEntries(text) {
		plan := events.Plan(entry.Name)
		n, err := strconv.Atoi(entry.Value)
		if err != nil || n < 1 || n > maxFlagMiB {
			return nil, fmt.Errorf("%q must be a plan, = and a whole number of MiB from 1 to %d", entry.Text, maxFlagMiB)
		}
		if !plan.Known() {
			return nil, fmt.Errorf("%q is no plan; those are %s", plan, slices.Sorted(maps.Keys(Default().Plans)))
		}
		limits[plan] = n << 20
	}
	return limits, nil
}

// Of returns the limit of a plan.
func (f FlagBytes) Of(plan events.Plan) int {
	if n, set := f[plan]; set {
		return n
	}
	return plan.Terms().TenantFlagBytes
}

// free returns the limit of a free tenant, and that of all free tenants of a creator together.
func (f FlagBytes) free() (each, together int) {
	each = max(f.Of(events.FreePlan), f.Of(events.SandboxPlan))
	return each, freeFactor * each
}

// DailyBytes returns how many bytes may be written on a day if flags may have so many.
func DailyBytes(flagBytes int) int { return dailyFactor * flagBytes }

// Tenants says what tenants have and may have, as writer.Quotas and for requests.
type Tenants struct {
	Live      *snapshot.Snapshot
	FlagBytes FlagBytes
	Limiter   *Limiter // counts the bytes of a day
	Now       func() time.Time
}

// Limits implements writer.Quotas. A free tenant counts for its creator with no more than one may have: one whose
// paid plan has ended does not keep the others from growing.
func (q *Tenants) Limits(tenantID string) writer.TenantLimits {
	tenant, ok := q.Live.Tenant(tenantID)
	if !ok {
		return writer.TenantLimits{MaxFlagBytes: q.FlagBytes.Of(events.FreePlan)}
	}
	l := writer.TenantLimits{
		Refusal:      commands.EndedSandbox(q.Live.SandboxEnd(tenantID), q.Now()),
		FlagBytes:    tenant.FlagBytes(),
		MaxFlagBytes: q.FlagBytes.Of(tenant.Plan(q.Now())),
	}
	if l.Creator = q.Creator(tenantID); l.Creator != "" {
		l.FreeBytes, l.MaxFreeBytes = q.OfCreator(l.Creator)
	}
	return l
}

// Creator returns the creator of a free tenant, and is empty for others.
func (q *Tenants) Creator(tenantID string) string {
	if tenant, ok := q.Live.Tenant(tenantID); ok && tenant.Plan(q.Now()).Unpaid() {
		return tenant.Creator()
	}
	return ""
}

// OfCreator returns how many bytes the flags of all free tenants of a person have together, and may have.
func (q *Tenants) OfCreator(creator string) (used, limit int) {
	each, together := q.FlagBytes.free()
	return q.Live.UnpaidFlagBytes(creator, each, q.Now()), together
}

// Wrote implements writer.Quotas. Bytes of a free tenant also count for its creator.
func (q *Tenants) Wrote(tenantID string, bytes int) {
	if tenantID == "" {
		return
	}
	q.Limiter.add(writtenBytes, tenantID, bytes)
	q.WroteFor(q.Creator(tenantID), bytes)
}

// WroteFor counts bytes that were stored for a person and belong to no tenant. They count with the person's free
// tenants.
func (q *Tenants) WroteFor(userID string, bytes int) {
	if userID != "" {
		q.Limiter.add(writtenBytes, creatorKey(userID), bytes)
	}
}

// WrittenToday returns how many bytes a tenant has written on this node since the day began in UTC, or the node
// started.
func (q *Tenants) WrittenToday(tenantID string) int { return q.Limiter.used(writtenBytes, tenantID) }

// FreeWrittenToday returns WrittenToday of all free tenants of a person, with deleted ones, and of calls about no
// tenant.
func (q *Tenants) FreeWrittenToday(creator string) int { return q.WrittenToday(creatorKey(creator)) }

// creatorKey returns the key that the free tenants of a person share. It is no tenant's id.
func creatorKey(creator string) string { return "creator " + creator }

// Written returns the limit of written bytes that is reached today, and whose changes reached it: the tenant's, or all
// free tenants of its creator together. whose is empty if neither has. The limits are a percentage of what a day may
// take.
func (q *Tenants) Written(tenantID string, percent int) (limit int, whose string) {
	l := q.Limits(tenantID)
	if limit = DailyBytes(l.MaxFlagBytes) * percent / 100; q.WrittenToday(tenantID) >= limit {
		return limit, "the changes of the tenant"
	}
	if l.Creator == "" {
		return 0, ""
	}
	if limit = DailyBytes(l.MaxFreeBytes) * percent / 100; q.FreeWrittenToday(l.Creator) >= limit {
		return limit, "the changes of all free and sandbox tenants of this one's creator"
	}
	return 0, ""
}
