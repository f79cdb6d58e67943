package http

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"flagledger/commands"
	"flagledger/events/state"
	"flagledger/queries"
)

// TenantBody is a tenant.
type TenantBody struct {
	ID           string              `json:"id" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
	Name         string              `json:"name" example:"Acme"`
	PrimaryEmail string              `json:"primaryEmail" example:"ops@example.com"`
	ContactName  string              `json:"contactName" example:"Ada Lovelace"`
	IsSandbox    bool                `json:"isSandbox" example:"false"`
	Subscription subscriptionSummary `json:"subscription"`
	CreatedAt    recordedTime        `json:"createdAt"`
}

func (a *API) showTenant(t queries.Tenant) TenantBody {
	return TenantBody{
		ID: t.ID, Name: t.Name, PrimaryEmail: t.PrimaryEmail, ContactName: t.ContactName, IsSandbox: t.IsSandbox,
		Subscription: a.summarize(t.Subscription, t.IsSandbox), CreatedAt: recordedTime(t.CreatedAt),
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
	Changed
	Location string `header:"Location"`
	Body     TenantBody
}

type createTenantBody struct {
	Name         string           `json:"name" minLength:"1" maxLength:"200" example:"Acme"`
	PrimaryEmail optional[string] `json:"primaryEmail,omitzero" maxLength:"254" doc:"The default is the creator's address, also for null" example:"ops@example.com" nullable:"true"`
	ContactName  string           `json:"contactName,omitempty" maxLength:"200" example:"Ada Lovelace"`
	IsSandbox    bool             `json:"isSandbox,omitempty" example:"false"`
}

// TenantPath names a tenant.
type TenantPath struct {
	TenantInput
	ID string `path:"tenantId" example:"0198c5a0-e4d1-7f2a-b6c8-4d0e9a7b5c13"`
}

func (a *API) addTenants() {
	const tag = "Tenants"
	register(a, access{who: person}, operation("GET", "/api/v1/tenants", "list-tenants", tag, "The caller's tenants"),
		func(ctx context.Context, in *PageInput) (*listOutput[ownTenantBody], error) {
			claims := principalOf(ctx).claims
			list, err := a.Queries.TenantsOf(ctx, claims.UserID, !a.isVerifiedPerson(claims), in.page())
			return listResponse(ctx, *in, list, err, func(m queries.OwnTenant) ownTenantBody {
				return ownTenantBody{a.showTenant(m.Tenant), string(m.Role)}
			})
		})
	create := operation("POST", "/api/v1/tenants", "create-tenant", tag, "Create a tenant; the caller becomes its admin")
	create.Description = "The number of tenants that a person may create a day (UTC), including deleted ones, is " +
		"limited, and so is the number of existing tenants that they created (429). Concurrent calls on several nodes may " +
		"exceed the latter by one per further node."
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	register(a, access{who: person}, create, a.createTenant)
	register(
		a,
		access{who: viewer, requireTenant: true},
		operation("GET", "/api/v1/tenants/{tenantId}", "get-tenant", tag, "One tenant"),
		func(ctx context.Context, in *TenantPath) (*tenantOutput, error) {
			tenant, err := a.Queries.Tenant(ctx, in.ID)
			return &tenantOutput{Body: a.showTenant(tenant)}, err
		},
	)
	update := operation("PATCH", "/api/v1/tenants/{tenantId}", "update-tenant", tag, "Change the sent fields of a tenant")
	register(a, access{who: admin}, update, a.updateTenant)
	remove := operation("DELETE", "/api/v1/tenants/{tenantId}", "delete-tenant", tag,
		"Delete a tenant and everything in it")
	remove.Description = "Tokens for the tenant and evaluation of its flags end at once. Its history remains in the log."
	remove.DefaultStatus = http.StatusNoContent
	register(
		a,
		access{who: admin, endsAccess: true},
		remove,
		func(ctx context.Context, in *TenantChange) (*noContent, error) {
			done, err := a.Tenancies.Delete(ctx, runner[state.Tenant](a),
				commands.DeleteTenant{TenantRef: commands.TenantRef{TenantID: in.ID}})
			return &noContent{changeHeaders(done)}, err
		},
	)
}

// wrongContact returns the errors of a tenant's contact by field.
func wrongContact(email optional[string], name *string) map[string]string {
	wrong := map[string]string{}
	if email.sent != nil && !email.null && commands.EmailKey(*email.sent) == "" {
		wrong["primaryEmail"] = commands.NotAnEmail
	}
	if name != nil && (utf8.RuneCountInString(*name) > maxContactName || strings.ContainsRune(*name, 0)) {
		wrong["contactName"] = fmt.Sprintf("must have at most %d characters", maxContactName)
	}
	return wrong
}

// contact returns a tenant's contact, with the canonical form of the address.
func contact(email optional[string], name *string) commands.Contact {
	c := commands.Contact{Email: email.sent, Name: name}
	if email.sent != nil {
		address, _ := commands.ParseEmail(*email.sent)
		c.Email = &address
	}
	return c
}

// TenantChange holds the parameters of every change to a tenant.
type TenantChange struct {
	TenantPath
	ChangeInput
}

type updateTenantBody struct {
	Name         optional[string] `json:"name,omitzero" minLength:"1" maxLength:"200" example:"Acme Inc."`
	PrimaryEmail optional[string] `json:"primaryEmail,omitzero" maxLength:"254" doc:"null restores the creator's address" example:"ops@example.com" nullable:"true"`
	ContactName  optional[string] `json:"contactName,omitzero" maxLength:"200" example:"Olive Operator" nullable:"true" doc:"null clears it"`
}

func (a *API) updateTenant(ctx context.Context, in *struct {
	TenantChange
	Body updateTenantBody
}) (*tenantOutput, error) {
	email, name := in.Body.PrimaryEmail, in.Body.ContactName.sent
	update := commands.UpdateTenant{TenantRef: commands.TenantRef{TenantID: in.ID}, Name: in.Body.Name.sent}
	if err := checkCommand(ctx, a.Writer, wrongContact(email, name), update); err != nil {
		return nil, err
	}
	state, done, err := a.Tenancies.Update(ctx, runner[state.Tenant](a), update, contact(email, name))
	if err != nil {
		return nil, err
	}
	tenant, err := a.Queries.Tenant(ctx, in.ID)
	tenant.Name = state.Name // the read model may not show it yet
	return &tenantOutput{Changed: changeHeaders(done), Body: a.showTenant(tenant)}, err
}

func (a *API) createTenant(ctx context.Context, in *struct {
	ChangeInput
	Body createTenantBody
}) (*tenantOutput, error) {
	claims := principalOf(ctx).claims
	wrong := wrongContact(in.Body.PrimaryEmail, &in.Body.ContactName)
	create := commands.CreateTenant{
		ID: newID(ctx), Name: in.Body.Name, Creator: claims.UserID,
		Environments: commands.FirstEnvironments(),
	}
	if in.Body.IsSandbox {
		create.SandboxEndsAt = a.Sandboxes.NewEnd()
	}
	created, release, err := commands.CountCreated(ctx, a.Writer, a.Queries, claims.UserID)
	if err != nil {
		return nil, err
	}
	defer release()
	create.Created = created
	if err := checkCommand(ctx, a.Writer, wrong, create); err != nil {
		return nil, err
	}
	email, sent := claims.Email, contact(in.Body.PrimaryEmail, &in.Body.ContactName)
	if sent.Email != nil && *sent.Email != "" {
		email = *sent.Email
	}
	tenant, done, err := a.Tenancies.Create(ctx, runner[state.Tenant](a), create, sent)
	if err != nil {
		return nil, err
	}
	if tenant.Sandbox {
		a.fillSandbox(ctx, tenant.ID)
	}
	return &tenantOutput{
		Changed: changeHeaders(done), Location: publicPath(ctx, "/api/v1/tenants/"+tenant.ID),
		Body: TenantBody{
			ID: tenant.ID, Name: tenant.Name, PrimaryEmail: email, ContactName: in.Body.ContactName, IsSandbox: tenant.Sandbox,
			Subscription: a.summarize(tenant.Subscription, tenant.Sandbox), CreatedAt: recordedTime(tenant.CreatedAt),
		},
	}, nil
}
