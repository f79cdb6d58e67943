package http

import (
	"context"

	"flagledger/projections/snapshot"
)

type usageBody struct {
	Flags       int   `json:"flags" example:"12"`
	Evaluations int64 `json:"evaluations" doc:"Of the calendar month in UTC: one for each flag that a call evaluated" example:"184203"`
	Users       int   `json:"users" doc:"Members; who was invited and has not signed in yet is none" example:"3"`
}

type usageOutput struct{ Body usageBody }

func (a *API) addUsage() {
	usage := operation("GET", "/api/v1/tenants/{tenantId}/usage", "get-usage", "Tenants", "How much a tenant has and uses")
	usage.Description = "The evaluations that this node answered are counted to the last; those of other nodes may come up to five seconds later."
	register(a, access{who: viewer}, usage, func(ctx context.Context, _ *TenantPath) (*usageOutput, error) {
		body, err := a.usage(ctx, principalOf(ctx).tenant)
		return &usageOutput{body}, err
	})
}

func (a *API) usage(ctx context.Context, tenant *snapshot.Tenant) (body usageBody, err error) {
	body.Flags, body.Users = tenant.Size()
	body.Evaluations, err = a.Meter.Evaluations(ctx, tenant.ID())
	return body, err
}
