package flags

import (
	"context"
	"slices"

	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
	"flagledger/queries"
)

type dependentBody struct {
	FlagKey     string        `json:"flagKey" doc:"Of the flag that requires this one" example:"new-checkout"`
	Environment string        `json:"environment" example:"production"`
	Off         bool          `json:"off,omitzero" doc:"true if this flag must be off; then serves is absent" example:"false"`
	Serves      []servedValue `json:"serves,omitempty" doc:"This flag must be on and serve one of these"`
}

// servedValue is what a flag serves: exactly one of a variation and a value.
type servedValue struct {
	VariationID string     `json:"variationId,omitempty" example:"0198c5a1-7d2e-7b10-9d0c-3f5f3f1f2a77"`
	Value       rest.Value `json:"value,omitempty" example:"true"`
}

func showServed(list []events.ServedValue) (shown []servedValue) {
	for _, s := range list {
		shown = append(shown, servedValue{s.VariationID, rest.Value(s.Value)})
	}
	return shown
}

func (a *API) addDependents() {
	op := rest.Operation("GET", "/api/v1/flags/{flagKey}/dependents", "list-flag-dependents", "Flags",
		"The flags that require a flag")
	op.Description = "By their keys, in all environments. They require it directly: flags that require these are not in " +
		"the list."
	op = rest.WithExamples(op, nil, []any{
		map[string]any{"flagKey": "new-checkout", "environment": "production", "serves": []any{map[string]any{"value": true}}},
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
		return rest.ListResponse(ctx, in.PageInput, list, nil, func(d snapshot.Dependent) dependentBody {
			return dependentBody{d.FlagKey, d.Environment.Name, d.Prerequisite.Off, showServed(d.Prerequisite.Serves)}
		})
	})
}

// requiredBy returns the keys of the flags that require a flag.
func requiredBy(tenant *snapshot.Tenant, key string) []string {
	keys := []string{}
	for _, d := range tenant.Dependents(key) {
		keys = append(keys, d.FlagKey)
	}
	return slices.Compact(keys)
}
