package accounts

import (
	"context"
	"net/http"

	"flagledger/commands"
	"flagledger/commands/tenants"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

type clientBody struct {
	ClientID     string            `json:"clientId" example:"0198c5a1-b6d4-7e38-a5f1-3c9d7e1b5f08"`
	ClientSecret string            `json:"clientSecret,omitempty" doc:"Shown only in this response" example:"Vv3mQd8Zr1kX5pT9yB2nL7cF4hJ6wS0a"`
	Name         string            `json:"name" example:"Checkout backend"`
	Scopes       []string          `json:"scopes" enum:"flags:read,flags:write,flags:evaluate,flags:sync,projects:read,projects:write" example:"[\"flags:read\",\"flags:evaluate\",\"projects:read\"]"`
	CreatedAt    rest.RecordedTime `json:"createdAt"`
}

func showClient(c queries.OAuthClient) clientBody {
	return clientBody{ClientID: c.ID, Name: c.Name, Scopes: c.Scopes, CreatedAt: rest.RecordedTime(c.CreatedAt)}
}

type clientOutput struct {
	rest.Changed
	Location string `header:"Location"`
	Body     clientBody
}

type createClientBody struct {
	Name   string   `json:"name" minLength:"1" maxLength:"200" example:"Checkout backend"`
	Scopes []string `json:"scopes" minItems:"1" enum:"flags:read,flags:write,flags:evaluate,flags:sync,projects:read,projects:write" doc:"The scopes that its tokens may have" example:"[\"flags:read\",\"flags:evaluate\",\"projects:read\"]"`
}

// ClientChange holds the parameters of every change to an OAuth client.
type ClientChange struct {
	rest.TenantInput
	rest.ChangeInput
	ID string `path:"clientId" example:"0198c5a1-b6d4-7e38-a5f1-3c9d7e1b5f08"`
}

func (c ClientChange) ref(ctx context.Context) commands.ClientRef {
	return commands.ClientRef{TenantRef: tenantRef(ctx), ID: c.ID}
}

func tenantRef(ctx context.Context) commands.TenantRef {
	return commands.TenantRef{TenantID: rest.PrincipalOf(ctx).Tenant.ID()}
}

func (a *API) addOAuth() {
	const tag, path = "OAuth", "/api/v1/oauth/clients"
	create := rest.Operation("POST", path, "create-oauth-client", tag,
		"Create an OAuth client: a machine with scopes in the tenant")
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin, RequireTenant: true}, create, func(ctx context.Context, in *struct {
		rest.TenantInput
		rest.ChangeInput
		Body createClientBody
	}) (*clientOutput, error) {
		client := commands.ClientRef{TenantRef: tenantRef(ctx), ID: rest.NewID(ctx)}
		out, err := a.issueSecret(ctx, client, func(hash []byte) commands.Command[state.Tenant] {
			return commands.CreateClient{
				TenantRef:  client.TenantRef,
				ID:         client.ID,
				Name:       in.Body.Name,
				Scopes:     in.Body.Scopes,
				SecretHash: hash,
			}
		})
		if err != nil {
			return nil, err
		}
		out.Location = rest.PublicPath(ctx, path+"/"+client.ID)
		return out, nil
	})
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, rest.Operation("GET", path, "list-oauth-clients", tag,
		"The tenant's OAuth clients"),
		func(ctx context.Context, in *struct {
			rest.TenantInput
			rest.PageInput
		}) (*rest.ListOutput[clientBody], error) {
			list, err := a.Queries.OAuthClients(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err, showClient)
		})
	remove := rest.Operation("DELETE", path+"/{clientId}", "delete-oauth-client", tag,
		"Delete an OAuth client; its tokens stop working at once")
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = []int{http.StatusNotFound}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, remove,
		func(ctx context.Context, in *ClientChange) (*rest.NoContent, error) {
			_, done, err := rest.Do(ctx, a.Writer, commands.DeleteClient{ClientRef: in.ref(ctx)})
			return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
		})
	rotate := rest.Operation("POST", path+"/{clientId}/rotate", "rotate-oauth-client", tag,
		"Give an OAuth client a new secret; the old one is valid for another "+events.PeriodText(commands.SecretOverlap))
	rotate.Errors = []int{http.StatusNotFound, http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, rotate,
		func(ctx context.Context, in *ClientChange) (*clientOutput, error) {
			return a.issueSecret(ctx, in.ref(ctx), func(hash []byte) commands.Command[state.Tenant] {
				return commands.RotateSecret{ClientRef: in.ref(ctx), SecretHash: hash, Now: a.Now()}
			})
		})
}

// issueSecret returns a client with its new secret. The secret is not stored and cannot be shown again.
func (a *API) issueSecret(
	ctx context.Context, client commands.ClientRef, command func(hash []byte) commands.Command[state.Tenant],
) (*clientOutput, error) {
	// a secret whose response was lost cannot be shown again, only rotated
	if err := rest.RequestOf(ctx).ReplayRefusal; err != nil {
		return nil, err
	}
	c, secret, done, err := tenants.IssueSecret(ctx, a.Writer, rest.CallMetadata(ctx),
		rest.Runner[state.Tenant](a.Core), client,
		a.Now(), command)
	if err != nil {
		return nil, err
	}
	out := &clientOutput{
		Changed: rest.ChangeHeaders(done),
		Body:    clientBody{ClientID: c.ID, ClientSecret: secret, Name: c.Name, CreatedAt: rest.RecordedTime(c.CreatedAt)},
	}
	for _, scope := range c.Scopes {
		out.Body.Scopes = append(out.Body.Scopes, string(scope))
	}
	return out, nil
}
