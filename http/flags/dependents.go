package flags

import (
	"context"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

type dependentBody struct {
	FlagKey     string            `json:"flagKey" doc:"Of the flag that requires this one" example:"new-checkout"`
	Environment string            `json:"environment" example:"production"`
	Off         bool              `json:"off,omitzero" doc:"This flag must be off. Absent if it must serve something" example:"false"`
	Serves      []rest.ServedBody `json:"serves,omitempty" doc:"This flag must be on and serve one of these. Absent if it must be off"`
}

func showDependent(d snapshot.Dependent) dependentBody {
	shown := showPrerequisites([]events.Prerequisite{d.Prerequisite})[0]
	return dependentBody{d.FlagKey, d.Environment.Name, shown.Off, shown.Serves}
}

func (a *API) addDependents() {
	op := rest.Operation("GET", "/api/v1/flags/{flagKey}/dependents", "list-dependents", "Prerequisites",
		"The flags that require a flag")
	op.Description = "By their keys, in all environments. They require it directly: flags that require these are not in " +
		"the list."
	op = rest.WithExamples(op, nil, []any{
		map[string]any{
			"flagKey": "new-checkout", "environment": "production", "serves": []any{map[string]any{"value": true}},
		},
		map[string]any{"flagKey": "old-checkout", "environment": "production", "off": true},
	})
	rest.Register(a.Core, rest.ReadFlags, op, func(ctx context.Context, in *struct {
		rest.TenantInput
		rest.PageInput
		Key         string `path:"flagKey" example:"new-checkout"`
		Environment string `header:"X-Environment" doc:"Must be one of the tenant's; the list has all environments"`
	}) (*rest.ListOutput[dependentBody], error) {
		tenant := rest.PrincipalOf(ctx).Tenant
		if _, ok := tenant.Flag(in.Key); !ok {
			return nil, queries.ErrNotFound
		}
		list := queries.ListOf(tenant.Dependents(in.Key), in.Page())
		return rest.ListResponse(ctx, in.PageInput, list, nil, showDependent)
	})
}
