package http

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/http/web"
	"flagledger/projections/snapshot"
)

type sandboxStatusBody struct {
	Active    bool       `json:"active" doc:"It takes changes" example:"true"`
	ExpiresAt *timestamp `json:"expiresAt" nullable:"true" doc:"When it stops, or has stopped, to take changes; null where it does not"`
}

type sandboxStatusOutput struct{ Body sandboxStatusBody }

type sandboxIndicatorsOutput struct {
	Body struct {
		FlagsUsed   int   `json:"flagsUsed" doc:"Flags that are not deleted" example:"10"`
		Evaluations int64 `json:"evaluations" doc:"Since the creation or the last cleanup; those on other nodes may come up to five seconds later" example:"1234"`
	}
}

type demoDataOutput struct {
	Body struct {
		Flags []string `json:"flags" doc:"The keys of the demo flags that are there" example:"[\"new-checkout\",\"dark-mode\"]"`
		Users []string `json:"users" doc:"The addresses of the demo people who are members. Nobody can sign in with them" example:"[\"dana.0198c5a0@example.com\"]"`
	}
}

// SandboxRequest is who wants a sandbox.
type SandboxRequest struct {
	Email string `json:"email" format:"email" maxLength:"254" example:"ada@example.com"`
	Name  string `json:"name,omitempty" maxLength:"200" doc:"The display name of a new account" example:"Ada Lovelace"`
}

const subscribeRoute = "/api/v1/sandbox/subscribe"

func (a *API) addSandbox() {
	const tag, path = "Sandbox", "/api/v1/sandbox"
	status := operation("GET", path+"/status", "get-sandbox-status", tag,
		"Whether the tenant is a sandbox that takes changes, and until when")
	status.Description = "A sandbox that has ended is still read and evaluated. Its admins are notified and mailed " +
		"twice: some days before it ends, and some days before it is deleted. It is deleted some weeks after its end, or " +
		"later if that second notice went out late. " +
		"One that has a subscription which can be managed, or was given another plan, does not end."
	register(a, access{who: viewer, requireTenant: true}, status, a.sandboxStatus)
	indicators := operation("GET", path+"/indicators", "get-sandbox-indicators", tag, "How much a sandbox has and uses")
	indicators.Errors = []int{http.StatusConflict}
	register(a, access{who: viewer}, indicators, a.sandboxIndicators)
	data := operation("GET", path+"/demo-data", "get-demo-data", tag, "What of a sandbox is demo data")
	data.Errors = []int{http.StatusConflict}
	register(a, access{who: viewer}, data, a.demoData)
	cleanup := operation("POST", path+"/cleanup/tenant", "clean-up-sandbox", tag, "Bring a sandbox back to its demo data")
	cleanup.Description = "All flags, projects and environments are as they were at first, whatever was done since. " +
		"Members, OAuth clients and the end of the sandbox stay. " +
		"What is made or changed after the call stays. A cleanup that fails, or takes too long, answers 503 and goes on by " +
		"itself within two minutes, " +
		"unless the caller is no admin any more. A tenant with a subscription or another plan is not cleaned up: it " +
		"answers 409."
	cleanup.Errors = []int{http.StatusConflict}
	register(a, access{who: admin, alone: true}, cleanup, a.cleanUpSandbox)
	subscribe := operation("POST", subscribeRoute, "subscribe-to-sandbox", tag,
		"Have a link mailed that makes an account and a sandbox")
	subscribe.Description = "The answer is the same for every address. The link leads to /sandbox, is good for one use " +
		"and three days, and is mailed " +
		"only so often. Whoever has an account already gets the sandbox in it, and gives its password."
	subscribe.DefaultStatus = http.StatusAccepted
	register(a, access{who: anyone}, subscribe, a.subscribeToSandbox)
}

func (a *API) sandboxStatus(ctx context.Context, _ *TenantInput) (*sandboxStatusOutput, error) {
	tenant := principalOf(ctx).tenant
	out := &sandboxStatusOutput{}
	if !tenant.Sandbox() {
		return out, nil
	}
	end := tenant.SandboxEnd()
	out.Body.Active = end.IsZero() || a.Now().Before(end)
	if !end.IsZero() {
		out.Body.ExpiresAt = (*timestamp)(&end)
	}
	return out, nil
}

func (a *API) sandboxIndicators(ctx context.Context, _ *TenantInput) (*sandboxIndicatorsOutput, error) {
	tenant, err := sandboxOf(ctx)
	if err != nil {
		return nil, err
	}
	out := &sandboxIndicatorsOutput{}
	out.Body.FlagsUsed, _ = tenant.Size()
	out.Body.Evaluations, err = a.Meter.SinceRestart(ctx, tenant.ID())
	return out, err
}

func (a *API) demoData(ctx context.Context, _ *TenantInput) (*demoDataOutput, error) {
	tenant, err := sandboxOf(ctx)
	if err != nil {
		return nil, err
	}
	return showDemoData(tenant), nil
}

func (a *API) cleanUpSandbox(ctx context.Context, _ *struct {
	TenantInput
	ChangeInput
}) (*successOutput, error) {
	if err := requestOf(ctx).replayRefusal; err != nil { // no facts are derived from the key
		return nil, err
	}
	return succeeded(commands.Done{}), a.Sandboxes.Cleanup(ctx, by(ctx), principalOf(ctx).tenant.ID())
}

func (a *API) subscribeToSandbox(ctx context.Context, in *struct{ Body SandboxRequest }) (*successOutput, error) {
	if err := withBodyErrors(ctx, commands.CheckSandboxRequest(in.Body.Email, in.Body.Name)); err != nil {
		return nil, err
	}
	address, _ := commands.ParseEmail(in.Body.Email)
	return succeeded(commands.Done{}), a.limitMails(ctx, func() error {
		return a.Links.QueueSandboxLink(ctx, address, in.Body.Name, a.Now())
	})
}

// sandboxOf is the tenant of a call about a sandbox.
func sandboxOf(ctx context.Context) (*snapshot.Tenant, error) {
	tenant := principalOf(ctx).tenant
	if !tenant.Sandbox() {
		return nil, newProblem(http.StatusConflict, "the tenant is no sandbox")
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

// fillSandbox adds the demo data of a sandbox that was created just now. Where that fails a job does it.
func (a *API) fillSandbox(ctx context.Context, tenantID string) {
	if err := a.Sandboxes.Fill(ctx, by(ctx), tenantID); err != nil {
		requestOf(ctx).log().Warn("the demo data of a sandbox is left to a job", "tenant", tenantID, "err", err)
	}
}

// sandboxForm is the page that a mailed link leads to.
func (a *API) sandboxForm(r *http.Request) (web.Page, error) {
	request, err := a.SandboxSignUp.Request(r.Context(), r.URL.Query().Get("token"))
	return web.Sandbox(request.Email, request.Name != "", int(a.Sandboxes.Active.Hours()/24), commands.MinPassword), err
}

// openSandbox makes the account and the sandbox of whoever has a link, unless too many wrong passwords were tried with
// it.
func (a *API) openSandbox(r *http.Request, form web.Form) (web.Page, error) {
	ctx := r.Context()
	request, err := a.SandboxSignUp.Request(ctx, form.Token)
	if err != nil {
		return web.Page{}, err
	}
	err = a.limitAttempts(ctx, "link "+form.Token, func() error {
		return a.SandboxSignUp.Open(ctx, requestBy(ctx), form.Token, form.Name, form.NewPassword)
	})
	if commands.KindOf(err) == commands.Unauthenticated {
		err = commands.InvalidField("password", "is not that of the account with this address")
	}
	return web.SandboxMade(request.Email), err
}
