package tenants

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/http/rest"
	"flagledger/projections/snapshot"
)

type sandboxStatusBody struct {
	Active    bool            `json:"active" doc:"Whether it accepts changes" example:"true"`
	ExpiresAt *rest.Timestamp `json:"expiresAt" nullable:"true" doc:"When it stops or stopped accepting changes; null if it does not expire"`
}

type sandboxStatusOutput struct{ Body sandboxStatusBody }

type sandboxIndicatorsOutput struct {
	Body struct {
		FlagsUsed   int   `json:"flagsUsed" doc:"Flags that are not deleted" example:"10"`
		Evaluations int64 `json:"evaluations" doc:"Since the creation or the last cleanup; other nodes' evaluations lag by up to five seconds" example:"1234"`
	}
}

type demoDataOutput struct {
	Body struct {
		Flags []string `json:"flags" doc:"The keys of the existing demo flags" example:"[\"new-checkout\",\"dark-mode\"]"`
		Users []string `json:"users" doc:"The addresses of the demo people who are members. They cannot be used to sign in" example:"[\"dana.0198c5a0@example.com\"]"`
	}
}

func (a *API) addSandbox() {
	const tag, path = "Sandbox", "/api/v1/sandbox"
	status := rest.Operation("GET", path+"/status", "get-sandbox-status", tag,
		"Whether the tenant is a sandbox that accepts changes, and until when")
	status.Description = "An expired sandbox can still be read and evaluated. Its admins are notified and mailed some " +
		"days before it expires, and again some days before it is deleted. It is deleted some weeks after its expiry, or " +
		"later if the second notice was late. A sandbox with a manageable subscription or another plan does not expire."
	rest.Register(a.Core, rest.Access{Who: rest.Viewer, RequireTenant: true}, status, a.sandboxStatus)
	indicators := rest.Operation("GET", path+"/indicators", "get-sandbox-indicators", tag, "Flags and usage of a sandbox")
	indicators.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, indicators, a.sandboxIndicators)
	data := rest.Operation("GET", path+"/demo-data", "get-demo-data", tag, "The demo data of a sandbox")
	data.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, data, a.demoData)
	cleanup := rest.Operation("POST", path+"/cleanup/tenant", "clean-up-sandbox", tag, "Reset a sandbox to its demo data")
	cleanup.Description = "Resets all flags, projects and environments to their initial state. Members, OAuth clients " +
		"and the sandbox's expiry do not change, nor does what is created or changed after the call. A cleanup that fails " +
		"or takes too long is 503 and continues in the background within two minutes, unless the caller is no longer an " +
		"admin. A tenant with a subscription or another plan is 409."
	cleanup.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin, Slow: true}, cleanup, a.cleanUpSandbox)
}

func (a *API) sandboxStatus(ctx context.Context, _ *rest.TenantInput) (*sandboxStatusOutput, error) {
	tenant := rest.PrincipalOf(ctx).Tenant
	out := &sandboxStatusOutput{}
	if !tenant.Sandbox() {
		return out, nil
	}
	end := tenant.SandboxEnd()
	out.Body.Active = end.IsZero() || a.Now().Before(end)
	if !end.IsZero() {
		out.Body.ExpiresAt = (*rest.Timestamp)(&end)
	}
	return out, nil
}

func (a *API) sandboxIndicators(ctx context.Context, _ *rest.TenantInput) (*sandboxIndicatorsOutput, error) {
	tenant, err := sandboxOf(ctx)
	if err != nil {
		return nil, err
	}
	out := &sandboxIndicatorsOutput{}
	out.Body.FlagsUsed, _ = tenant.Size()
	out.Body.Evaluations, err = a.Meter.SinceRestart(ctx, tenant.ID())
	return out, err
}

func (a *API) demoData(ctx context.Context, _ *rest.TenantInput) (*demoDataOutput, error) {
	tenant, err := sandboxOf(ctx)
	if err != nil {
		return nil, err
	}
	return showDemoData(tenant), nil
}

func (a *API) cleanUpSandbox(ctx context.Context, _ *struct {
	rest.TenantInput
	rest.ChangeInput
}) (*rest.SuccessOutput, error) {
	if err := rest.RequestOf(ctx).ReplayRefusal; err != nil { // facts have no ids derived from the key
		return nil, err
	}
	return rest.SuccessResponse(writer.Done{}), a.Sandboxes.Cleanup(ctx, rest.CallMetadata(ctx),
		rest.PrincipalOf(ctx).Tenant.ID())
}

// sandboxOf returns the call's tenant, or a problem if it is not a sandbox.
func sandboxOf(ctx context.Context) (*snapshot.Tenant, error) {
	tenant := rest.PrincipalOf(ctx).Tenant
	if !tenant.Sandbox() {
		return nil, rest.NewProblem(http.StatusConflict, "the tenant is not a sandbox")
	}
	return tenant, nil
}

func showDemoData(tenant *snapshot.Tenant) *demoDataOutput {
	out := &demoDataOutput{}
	out.Body.Flags, out.Body.Users = []string{}, []string{}
	for _, key := range commands.DemoFlags() {
		if _, there := tenant.Flag(key); there {
			out.Body.Flags = append(out.Body.Flags, key)
		}
	}
	for _, p := range commands.DemoPeople(tenant.ID()) {
		if _, member := tenant.Role(p.UserID); member {
			out.Body.Users = append(out.Body.Users, p.Email)
		}
	}
	return out
}

// fillSandbox adds the demo data of a new sandbox. If that fails, a job retries it.
func (a *API) fillSandbox(ctx context.Context, tenantID string) {
	if err := a.Sandboxes.Fill(ctx, rest.CallMetadata(ctx), tenantID); err != nil {
		rest.RequestOf(ctx).Log().Warn("adding the demo data of a sandbox failed; a job retries it",
			"tenant", tenantID, "err", err)
	}
}
