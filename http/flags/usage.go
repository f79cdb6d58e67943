package flags

import (
	"context"

	"flagledger/commands"
	"flagledger/http/quota"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

// UsageBody is what a tenant has and uses.
type UsageBody struct {
	Flags       int   `json:"flags" example:"12"`
	Evaluations int64 `json:"evaluations" doc:"Of the calendar month in UTC: one for each flag that a call evaluated" example:"184203"`
	Users       int   `json:"users" doc:"Members; who was invited and has not signed in yet is none" example:"3"`
}

// tenantUsage is the usage as the tenant itself sees it.
type tenantUsage struct {
	UsageBody
	Bytes             int         `json:"bytes" doc:"Of all flags together, about as they are as JSON: names, texts, tags, values, variations, and the rules of all environments, with 16 more for each value of a condition" example:"48211"`
	BytesWrittenToday int         `json:"bytesWrittenToday" doc:"By changes, in UTC: their facts, and what is kept for Idempotency-Keys. This node counts for itself, from its start" example:"90211"`
	Limits            usageLimits `json:"limits"`

	AllUnpaid *unpaidUsage `json:"allUnpaid,omitempty" doc:"All free and sandbox tenants that the caller created; only where this is one of them"`
}

// unpaidUsage is what all tenants take together that a person created and pays nothing for. It is shown to that person
// alone.
type unpaidUsage struct {
	Bytes             int          `json:"bytes" doc:"Of all their flags; a tenant whose plan has ended counts with what another may have at most" example:"96422"`
	BytesWrittenToday int          `json:"bytesWrittenToday" doc:"As that of a tenant, those that were deleted since included, and what is kept for Idempotency-Keys of calls about no tenant" example:"190211"`
	Limits            unpaidLimits `json:"limits"`
}

type unpaidLimits struct {
	Bytes              int `json:"bytes" example:"67108864"`
	BytesWrittenPerDay int `json:"bytesWrittenPerDay" example:"536870912"`
}

type usageLimits struct {
	Flags              int `json:"flags" doc:"How many flags the tenant may have" example:"20000"`
	Bytes              int `json:"bytes" doc:"How many bytes they may have together, by plan" example:"16777216"`
	BytesWrittenPerDay int `json:"bytesWrittenPerDay" doc:"How many bytes its changes may take on a day, by plan, on each node" example:"134217728"`
	RequestsPerMinute  int `json:"requestsPerMinute" doc:"By plan, on each node" example:"1200"`
}

type usageOutput struct{ Body tenantUsage }

func (a *API) addUsage() {
	usage := rest.Operation("GET", "/api/v1/tenants/{tenantId}/usage", "get-usage", "Tenants",
		"How much a tenant has and uses")
	usage.Description = "The evaluations that this node answered are counted to the last; those of other nodes may come " +
		"up to five seconds later. " +
		"A change by which the flags would grow beyond `limits` is answered with 409; one by which they shrink never is. " +
		"Once `bytesWrittenToday` reaches " +
		"its limit, changes with a body or an Idempotency-Key are answered with 429 until the next day; later, those " +
		"without a body are only few a minute for each person, and for all machines together. Both hold for `allUnpaid` " +
		"too, the latter also for the caller's calls about no tenant that bear an Idempotency-Key."
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, usage,
		func(ctx context.Context, _ *rest.TenantPath) (*usageOutput, error) {
			body, err := a.usage(ctx, rest.PrincipalOf(ctx).Tenant)
			return &usageOutput{body}, err
		})
}

func (a *API) usage(ctx context.Context, tenant *snapshot.Tenant) (body tenantUsage, err error) {
	body.Flags, body.Users = tenant.Size()
	limits := a.Quotas.Limits(tenant.ID())
	body.Bytes, body.Limits.Bytes = limits.FlagBytes, limits.MaxFlagBytes
	body.BytesWrittenToday = a.Quotas.WrittenToday(tenant.ID())
	body.Limits.BytesWrittenPerDay = quota.DailyBytes(limits.MaxFlagBytes)
	body.Limits.Flags, body.Limits.RequestsPerMinute = commands.MaxFlags, a.Limiter.RequestsPerMinute(tenant.Plan(a.Now()))
	if creator := limits.Creator; creator != "" && creator == rest.PrincipalOf(ctx).Claims.UserID {
		all := &unpaidUsage{Bytes: limits.FreeBytes, BytesWrittenToday: a.Quotas.FreeWrittenToday(creator)}
		all.Limits.Bytes, all.Limits.BytesWrittenPerDay = limits.MaxFreeBytes, quota.DailyBytes(limits.MaxFreeBytes)
		body.AllUnpaid = all
	}
	body.Evaluations, err = a.Meter.Evaluations(ctx, tenant.ID())
	return body, err
}
