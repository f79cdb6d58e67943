package http

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/http/web"
	"flagledger/projections/snapshot"
)

type sandboxStatusBody struct {
	Active    bool       `json:"active" doc:"Whether it accepts changes" example:"true"`
	ExpiresAt *timestamp `json:"expiresAt" nullable:"true" doc:"When it stops or stopped accepting changes; null if it does not expire"`
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

// SandboxRequest is a request for a sandbox.
type SandboxRequest struct {
	Email string `json:"email" format:"email" maxLength:"254" example:"ada@example.com"`
	Name  string `json:"name,omitempty" maxLength:"200" doc:"The display name of a new account" example:"Ada Lovelace"`
}

const subscribeRoute = "/api/v1/sandbox/subscribe"

func (a *API) addSandbox() {
	const tag, path = "Sandbox", "/api/v1/sandbox"
	status := operation("GET", path+"/status", "get-sandbox-status", tag,
		"Whether the tenant is a sandbox that accepts changes, and until when")
	status.Description = "An expired sandbox can still be read and evaluated. Its admins are notified and mailed some " +
		"days before it expires, and again some days before it is deleted. It is deleted some weeks after its expiry, or " +
		"later if the second notice was late. A sandbox with a manageable subscription or another plan does not expire."
	register(a, access{who: viewer, requireTenant: true}, status, a.sandboxStatus)
	indicators := operation("GET", path+"/indicators", "get-sandbox-indicators", tag, "Flags and usage of a sandbox")
	indicators.Errors = []int{http.StatusConflict}
	register(a, access{who: viewer}, indicators, a.sandboxIndicators)
	data := operation("GET", path+"/demo-data", "get-demo-data", tag, "The demo data of a sandbox")
	data.Errors = []int{http.StatusConflict}
	register(a, access{who: viewer}, data, a.demoData)
	cleanup := operation("POST", path+"/cleanup/tenant", "clean-up-sandbox", tag, "Reset a sandbox to its demo data")
	cleanup.Description = "Resets all flags, projects and environments to their initial state. Members, OAuth clients " +
		"and the sandbox's expiry do not change, nor does what is created or changed after the call. A cleanup that fails " +
		"or takes too long is 503 and continues in the background within two minutes, unless the caller is no longer an " +
		"admin. A tenant with a subscription or another plan is 409."
	cleanup.Errors = []int{http.StatusConflict}
	register(a, access{who: admin, slow: true}, cleanup, a.cleanUpSandbox)
}

func (a *API) addSandboxSignUp() {
	subscribe := operation("POST", subscribeRoute, "subscribe-to-sandbox", "Sandbox",
		"Send a link that creates an account and a sandbox")
	subscribe.Description = "The answer is the same for every address. The link opens /sandbox and is valid for one use " +
		"within three days. The number of mails is limited. A person with an account gets the sandbox in it by entering " +
		"the account's password."
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
	if err := requestOf(ctx).replayRefusal; err != nil { // facts have no ids derived from the key
		return nil, err
	}
	return successResponse(commands.Done{}), a.Sandboxes.Cleanup(ctx, callMetadata(ctx), principalOf(ctx).tenant.ID())
}

func (a *API) subscribeToSandbox(ctx context.Context, in *struct{ Body SandboxRequest }) (*successOutput, error) {
	if err := addBodyErrors(ctx, commands.CheckSandboxRequest(in.Body.Email, in.Body.Name)); err != nil {
		return nil, err
	}
	address, _ := commands.ParseEmail(in.Body.Email)
	return successResponse(commands.Done{}), a.limitMails(ctx, func() error {
		return a.Links.QueueSandboxLink(ctx, address, in.Body.Name, a.Now())
	})
}

// sandboxOf returns the call's tenant, or a problem if it is not a sandbox.
func sandboxOf(ctx context.Context) (*snapshot.Tenant, error) {
	tenant := principalOf(ctx).tenant
	if !tenant.Sandbox() {
		return nil, newProblem(http.StatusConflict, "the tenant is not a sandbox")
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
	if err := a.Sandboxes.Fill(ctx, callMetadata(ctx), tenantID); err != nil {
		requestOf(ctx).log().Warn("adding the demo data of a sandbox failed; a job retries it",
			"tenant", tenantID, "err", err)
	}
}

// sandboxForm returns the page that a mailed link opens.
func (a *API) sandboxForm(r *http.Request) (web.Page, error) {
	request, err := a.SandboxSignUp.Request(r.Context(), r.URL.Query().Get("token"))
	return web.Sandbox(request.Email, request.Name != "", int(a.SandboxSignUp.Sandboxes.Active.Hours()/24), commands.MinPassword), err
}

// openSandbox creates the account and the sandbox for the owner of a link. It limits wrong passwords per link.
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
		err = commands.InvalidField("password", "is not the password of the account with this address")
	}
	return web.SandboxReady(request.Email), err
}
