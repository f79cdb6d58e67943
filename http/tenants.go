package http

import (
	"context"
	"net/http"
	"net/mail"
	"unicode/utf8"

	"flagledger/commands"
	"flagledger/queries"
)

type subscriptionSummary struct {
	Plan   string `json:"plan"`
	Status string `json:"status"`
}

type tenantBody struct {
	ID           string              `json:"id"`
	Name         string              `json:"name"`
	PrimaryEmail string              `json:"primaryEmail"`
	ContactName  string              `json:"contactName"`
	IsSandbox    bool                `json:"isSandbox"`
	Subscription subscriptionSummary `json:"subscription"`
	CreatedAt    timestamp           `json:"createdAt"`
}

func showTenant(t queries.Tenant) tenantBody {
	return tenantBody{
		ID: t.ID, Name: t.Name, PrimaryEmail: t.PrimaryEmail, ContactName: t.ContactName, IsSandbox: t.IsSandbox,
		Subscription: subscriptionSummary{t.Plan, t.Status}, CreatedAt: timestamp(t.CreatedAt),
	}
}

const (
	maxEmail       = 254
	maxContactName = 200
)

type tenantOutput struct {
	Changed
	Location string `header:"Location"`
	Body     tenantBody
}

type createTenantBody struct {
	Name         string `json:"name" minLength:"1" maxLength:"200" example:"Acme"`
	PrimaryEmail string `json:"primaryEmail,omitempty" maxLength:"254" doc:"The creator's address without it" example:"ops@example.com"`
	ContactName  string `json:"contactName,omitempty" maxLength:"200"`
	IsSandbox    bool   `json:"isSandbox,omitempty"`
}

// TenantPath names a tenant.
type TenantPath struct {
	TenantInput
	ID string `path:"tenantId"`
}

func (a *API) addTenants() {
	const tag = "Tenants"
	register(a, access{who: person}, operation("GET", "/api/v1/tenants", "list-tenants", tag, "The caller's tenants"),
		func(ctx context.Context, in *PageInput) (*listOutput[tenantBody], error) {
			rows, total, err := a.queries.TenantsOf(ctx, principalOf(ctx).claims.UserID, in.page())
			if err != nil {
				return nil, err
			}
			return listed(ctx, *in, rows, total, showTenant), nil
		}, "/api/tenants")
	create := operation("POST", "/api/v1/tenants", "create-tenant", tag, "Create a tenant; the caller becomes its admin")
	create.DefaultStatus = http.StatusCreated
	register(a, access{who: person}, create, a.createTenant, "/api/tenants")
	register(a, access{who: viewer, tenantHeader: true}, operation("GET", "/api/v1/tenants/{tenantId}", "get-tenant", tag, "One tenant"),
		func(ctx context.Context, in *TenantPath) (*tenantOutput, error) {
			tenant, err := a.queries.Tenant(ctx, in.ID)
			return &tenantOutput{Body: showTenant(tenant)}, err
		}, "/api/tenants/{tenantId}")
	register(a, access{who: viewer}, operation("GET", "/api/v1/tenants/{tenantId}/environments", "list-environments", tag, "The names of a tenant's environments"),
		func(ctx context.Context, in *struct {
			TenantPath
			PageInput
		}) (*listOutput[string], error) {
			names, total, err := a.queries.Environments(ctx, in.ID, in.page())
			if err != nil {
				return nil, err
			}
			return listed(ctx, in.PageInput, names, total, func(name string) string { return name }), nil
		})
}

// createTenant writes the contact, which is no fact, before the facts: a tenant is never without the one that was sent.
func (a *API) createTenant(ctx context.Context, in *struct {
	ChangeInput
	Body createTenantBody
}) (*tenantOutput, error) {
	claims := principalOf(ctx).claims
	email := in.Body.PrimaryEmail
	wrong := map[string]string{}
	if address, err := mail.ParseAddress(email); email != "" && (err != nil || address.Address != email || len(email) > maxEmail) {
		wrong["primaryEmail"] = "must be an e-mail address"
	}
	if utf8.RuneCountInString(in.Body.ContactName) > maxContactName {
		wrong["contactName"] = "must have at most 200 characters"
	}
	create := commands.CreateTenant{
		ID: commands.NewID(), Name: in.Body.Name, Sandbox: in.Body.IsSandbox, Creator: claims.UserID, Environments: commands.FirstEnvironments(),
	}
	if err := create.Check(wrong); err != nil {
		return nil, err
	}
	if email != "" || in.Body.ContactName != "" {
		if err := a.directory.SetContact(ctx, create.ID, email, in.Body.ContactName); err != nil {
			return nil, err
		}
	}
	tenant, done, err := commands.Do(ctx, a.writer, by(ctx), create)
	if err != nil {
		return nil, err
	}
	if email == "" {
		email = claims.Email
	}
	return &tenantOutput{
		Changed: changedBy(done), Location: "/api/v1/tenants/" + tenant.ID,
		Body: tenantBody{
			ID: tenant.ID, Name: tenant.Name, PrimaryEmail: email, ContactName: in.Body.ContactName, IsSandbox: tenant.Sandbox,
			Subscription: subscriptionSummary{string(tenant.Plan), "active"}, CreatedAt: timestamp(tenant.CreatedAt),
		},
	}, nil
}
