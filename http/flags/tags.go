package flags

import (
	"context"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/queries"
)

type tagBody struct {
	Name      string `json:"name" example:"web"`
	FlagCount int    `json:"flagCount" doc:"Flags that have it" example:"3"`
}

func (a *API) addTags() {
	access := rest.Access{Who: rest.Viewer, Scope: events.FlagsRead}
	rest.Register(a.Core, access, rest.Operation("GET", "/api/v1/tags", "list-tags", "Flags",
		"The tags of the tenant's flags, by name, some hundreds at most: read more with offset"),
		func(ctx context.Context, in *struct {
			rest.TenantInput
			rest.PageInput
		}) (*rest.ListOutput[tagBody], error) {
			list, err := a.Queries.Tags(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err,
				func(t queries.Tag) tagBody { return tagBody(t) })
		})
}
