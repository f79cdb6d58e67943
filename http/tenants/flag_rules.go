package tenants

import (
	"context"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/rest"
)

type flagRulesBody struct {
	Naming        rest.OrNull[flagNamingBody] `json:"naming" required:"false" doc:"What keys of new flags must look like; null for any key"`
	RequireReason []string                    `json:"requireReason" required:"false" doc:"Names of environments. A change of a flag in one of them, or of the whole flag while it is on there, needs X-Change-Reason; disabling it never does" example:"[\"production\"]"`
	RequireOwner  bool                        `json:"requireOwner" required:"false" doc:"A new flag needs an owner" example:"false"`
}

type flagNamingBody struct {
	Pattern string `json:"pattern" minLength:"1" maxLength:"200" doc:"A regular expression of RE2 that matches the whole key" example:"[a-z][a-z0-9-]*"`
	Example string `json:"example" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"A key that matches the pattern" example:"shop-new-checkout"`
	Hint    string `json:"hint" required:"false" maxLength:"200" doc:"Shown when a key does not match" example:"The team, then what the flag is for, in lower case"`
}

type flagRulesOutput struct {
	rest.Changed
	Body flagRulesBody
}

func showFlagRules(rules events.FlagRules) *flagRulesOutput {
	out := &flagRulesOutput{Body: flagRulesBody{
		Naming:        rest.OrNull[flagNamingBody]{Value: (*flagNamingBody)(rules.Naming)},
		RequireReason: []string{},
		RequireOwner:  rules.RequireOwner,
	}}
	for _, e := range rules.RequireReason {
		out.Body.RequireReason = append(out.Body.RequireReason, e.Name)
	}
	return out
}

func (a *API) addFlagRules() {
	const tag, path = "Tenants", "/api/v1/tenants/{tenantId}/flag-rules"
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, rest.Operation("GET", path, "get-flag-rules", tag,
		"What changes of flags must meet"),
		func(ctx context.Context, _ *rest.TenantPath) (*flagRulesOutput, error) {
			return showFlagRules(rest.PrincipalOf(ctx).Tenant.FlagRules()), nil
		})
	set := rest.Operation("PUT", path, "set-flag-rules", tag, "Set what changes of flags must meet")
	set.Description = "The rules hold for later changes; what exists stays as it is. A member that is not sent is " +
		"reset. A change that is made at the same time as the rules may still pass."
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, set, func(ctx context.Context, in *struct {
		TenantChange
		Body flagRulesBody
	}) (*flagRulesOutput, error) {
		tenant, done, err := rest.Do(ctx, a.Writer, commands.SetFlagRules{
			TenantRef:     commands.TenantRef{TenantID: in.ID},
			Naming:        (*events.FlagNaming)(in.Body.Naming.Value),
			RequireReason: in.Body.RequireReason,
			RequireOwner:  in.Body.RequireOwner,
		})
		if err != nil {
			return nil, err
		}
		out := showFlagRules(tenant.FlagRules)
		out.Changed = rest.ChangeHeaders(done)
		return out, nil
	})
}
