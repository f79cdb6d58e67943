package tenants

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"flagledger/commands"
	"flagledger/commands/tenants"
	"flagledger/commands/writer"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

// TenantBody is a tenant.
type TenantBody struct {
	ID           string                   `json:"id" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
	Name         string                   `json:"name" example:"Acme"`
	PrimaryEmail string                   `json:"primaryEmail" example:"ops@example.com"`
	ContactName  string                   `json:"contactName" example:"Ada Lovelace"`
	IsSandbox    bool                     `json:"isSandbox" example:"false"`
	Subscription rest.SubscriptionSummary `json:"subscription"`
	CreatedAt    rest.RecordedTime        `json:"createdAt"`
}

// ShowTenant returns a tenant for a response.
func (a *API) ShowTenant(t queries.Tenant) TenantBody {
	return TenantBody{
		ID: t.ID, Name: t.Name, PrimaryEmail: t.PrimaryEmail, ContactName: t.ContactName, IsSandbox: t.IsSandbox,
		Subscription: a.Summarize(t.Subscription, t.IsSandbox), CreatedAt: rest.RecordedTime(t.CreatedAt),
	}
}

// ownTenantBody is a tenant of the caller.
type ownTenantBody struct {
	TenantBody
	Role string `json:"role" enum:"admin,developer,viewer" doc:"The caller's role" example:"admin"`
}

const (
	maxContactName = 200
)

type tenantOutput struct {
	rest.Changed
	Location string `header:"Location"`
	Body     TenantBody
}

type createTenantBody struct {
	Name         string                `json:"name" minLength:"1" maxLength:"200" example:"Acme"`
	PrimaryEmail rest.Optional[string] `json:"primaryEmail,omitzero" maxLength:"254" doc:"The default is the creator's address, also for null" example:"ops@example.com" nullable:"true"`
	ContactName  string                `json:"contactName,omitempty" maxLength:"200" example:"Ada Lovelace"`
	IsSandbox    bool                  `json:"isSandbox,omitempty" example:"false"`
}

func (a *API) addTenants() {
	const tag = "Tenants"
	rest.Register(a.Core, rest.Access{Who: rest.Person}, rest.Operation("GET", "/api/v1/tenants", "list-tenants",
		tag, "The caller's tenants"),
		func(ctx context.Context, in *rest.PageInput) (*rest.ListOutput[ownTenantBody], error) {
			claims := rest.PrincipalOf(ctx).Claims
			list, err := a.Queries.TenantsOf(ctx, claims.UserID, !a.IsVerifiedPerson(claims), in.Page())
			return rest.ListResponse(ctx, *in, list, err, func(m queries.OwnTenant) ownTenantBody {
				return ownTenantBody{a.ShowTenant(m.Tenant), string(m.Role)}
			})
		})
	create := rest.Operation("POST", "/api/v1/tenants", "create-tenant", tag,
		"Create a tenant; the caller becomes its admin")
	create.Description = "The number of tenants that a person may create a day (UTC), including deleted ones, is " +
		"limited, and so is the number of existing tenants that they created (429). Concurrent calls on several nodes may " +
		"exceed the latter by one per further node."
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Person}, create, a.createTenant)
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Viewer, RequireTenant: true},
		rest.Operation("GET", "/api/v1/tenants/{tenantId}", "get-tenant", tag, "One tenant"),
		func(ctx context.Context, in *rest.TenantPath) (*tenantOutput, error) {
			tenant, err := a.Queries.Tenant(ctx, in.ID)
			return &tenantOutput{Body: a.ShowTenant(tenant)}, err
		},
	)
	update := rest.Operation("PATCH", "/api/v1/tenants/{tenantId}", "update-tenant", tag,
		"Change the sent fields of a tenant")
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, update, a.updateTenant)
	remove := rest.Operation("DELETE", "/api/v1/tenants/{tenantId}", "delete-tenant", tag,
		"Delete a tenant and everything in it")
	remove.Description = "Tokens for the tenant and evaluation of its flags end at once. Its history remains in the log."
	remove.DefaultStatus = http.StatusNoContent
	rest.Register(
		a.Core,
		rest.Access{Who: rest.Admin, EndsAccess: true},
		remove,
		func(ctx context.Context, in *TenantChange) (*rest.NoContent, error) {
			done, err := a.Tenancies.Delete(ctx, rest.Runner[state.Tenant](a.Core),
				commands.DeleteTenant{TenantRef: commands.TenantRef{TenantID: in.ID}})
			return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
		},
	)
}

// wrongContact returns the errors of a tenant's contact by field.
func wrongContact(email rest.Optional[string], name *string) map[string]string {
	wrong := map[string]string{}
	if email.Sent != nil && !email.Null && commands.EmailKey(*email.Sent) == "" {
		wrong["primaryEmail"] = commands.NotAnEmail
	}
	if name != nil && (utf8.RuneCountInString(*name) > maxContactName || strings.ContainsRune(*name, 0)) {
		wrong["contactName"] = fmt.Sprintf("must have at most %d characters", maxContactName)
	}
	return wrong
}

// contact returns a tenant's contact, with the canonical form of the address.
func contact(email rest.Optional[string], name *string) tenants.Contact {
	c := tenants.Contact{Email: email.Sent, Name: name}
	if email.Sent != nil {
		address, _ := commands.ParseEmail(*email.Sent)
		c.Email = &address
	}
	return c
}

// TenantChange holds the parameters of every change to a tenant.
type TenantChange struct {
	rest.TenantPath
	rest.ChangeInput
}

type updateTenantBody struct {
	Name         rest.Optional[string] `json:"name,omitzero" minLength:"1" maxLength:"200" example:"Acme Inc."`
	PrimaryEmail rest.Optional[string] `json:"primaryEmail,omitzero" maxLength:"254" doc:"null restores the creator's address" example:"ops@example.com" nullable:"true"`
	ContactName  rest.Optional[string] `json:"contactName,omitzero" maxLength:"200" example:"Olive Operator" nullable:"true" doc:"null clears it"`
}

func (a *API) updateTenant(ctx context.Context, in *struct {
	TenantChange
	Body updateTenantBody
}) (*tenantOutput, error) {
	email, name := in.Body.PrimaryEmail, in.Body.ContactName.Sent
	update := commands.UpdateTenant{TenantRef: commands.TenantRef{TenantID: in.ID}, Name: in.Body.Name.Sent}
	if err := rest.CheckCommand(ctx, a.Writer, wrongContact(email, name), update); err != nil {
		return nil, err
	}
	state, done, err := a.Tenancies.Update(ctx, rest.Runner[state.Tenant](a.Core), update, contact(email, name))
	if err != nil {
		return nil, err
	}
	tenant, err := a.Queries.Tenant(ctx, in.ID)
	tenant.Name = state.Name // the read model may not show it yet
	return &tenantOutput{Changed: rest.ChangeHeaders(done), Body: a.ShowTenant(tenant)}, err
}

func (a *API) createTenant(ctx context.Context, in *struct {
	rest.ChangeInput
	Body createTenantBody
}) (*tenantOutput, error) {
	claims := rest.PrincipalOf(ctx).Claims
	wrong := wrongContact(in.Body.PrimaryEmail, &in.Body.ContactName)
	create := commands.CreateTenant{
		ID: rest.NewID(ctx), Name: in.Body.Name, Creator: claims.UserID,
		Environments: commands.FirstEnvironments(),
	}
	if in.Body.IsSandbox {
		create.SandboxEndsAt = a.Sandboxes.NewEnd()
	}
	created, release, err := writer.CountCreated(ctx, a.Writer, a.Queries, claims.UserID)
	if err != nil {
		return nil, err
	}
	defer release()
	create.Created = created
	if err := rest.CheckCommand(ctx, a.Writer, wrong, create); err != nil {
		return nil, err
	}
	email, sent := claims.Email, contact(in.Body.PrimaryEmail, &in.Body.ContactName)
	if sent.Email != nil && *sent.Email != "" {
		email = *sent.Email
	}
	tenant, done, err := a.Tenancies.Create(ctx, rest.Runner[state.Tenant](a.Core), create, sent)
	if err != nil {
		return nil, err
	}
	if tenant.Sandbox {
		a.fillSandbox(ctx, tenant.ID)
	}
	return &tenantOutput{
		Changed: rest.ChangeHeaders(done), Location: rest.PublicPath(ctx, "/api/v1/tenants/"+tenant.ID),
		Body: TenantBody{
			ID: tenant.ID, Name: tenant.Name, PrimaryEmail: email, ContactName: in.Body.ContactName, IsSandbox: tenant.Sandbox,
			Subscription: a.Summarize(tenant.Subscription, tenant.Sandbox), CreatedAt: rest.RecordedTime(tenant.CreatedAt),
		},
	}, nil
}
