package tenants

import (
	"context"
	"net/http"
	"net/url"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/http/rest"
	"flagledger/queries"
)

type environmentOutput struct {
	rest.Changed
	Location string `header:"Location"`
	Body     environmentBody
}

type environmentBody struct {
	Environment string `json:"environment" pattern:"^[a-z0-9][a-z0-9-]{0,62}$" example:"staging"`
}

func (a *API) addEnvironments() {
	const tag, path = "Tenants", "/api/v1/tenants/{tenantId}/environments"
	names := rest.Operation("GET", path, "list-environments", tag, "The names of a tenant's environments")
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, rest.WithExamples(names, nil, []string{"production",
		"development"}),
		func(ctx context.Context, in *struct {
			rest.TenantPath
			rest.PageInput
			rest.HistoricalListInput
		}) (*rest.ListOutput[string], error) {
			list, err := a.Queries.Environments(ctx, in.ID, in.At, in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err, func(e queries.Environment) string { return e.Name })
		})
	add := rest.Operation("POST", path, "add-environment", tag, "Add an environment, in which all flags are off")
	add.DefaultStatus = http.StatusCreated
	add.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, add, func(ctx context.Context, in *struct {
		TenantChange
		Body environmentBody
	}) (*environmentOutput, error) {
		_, done, err := rest.Do(ctx, a.Writer, commands.AddEnvironment{
			TenantRef: commands.TenantRef{
				TenantID: in.ID,
			},
			Environment: events.EnvironmentRef{ID: rest.NewID(ctx), Name: in.Body.Environment},
			Now:         a.Now(),
		})
		return &environmentOutput{
			Changed:  rest.ChangeHeaders(done),
			Location: rest.PublicPath(ctx, "/api/v1/tenants/"+url.PathEscape(in.ID)+"/environments/"+in.Body.Environment),
			Body:     in.Body,
		}, err
	})
	remove := rest.Operation("DELETE", path+"/{environment}", "delete-environment", tag,
		"Delete an environment and the flags' state in it")
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = []int{http.StatusNotFound, http.StatusConflict}
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, remove, func(ctx context.Context, in *struct {
		TenantChange
		Environment string `path:"environment" example:"staging"`
	}) (*rest.NoContent, error) {
		_, done, err := rest.Do(ctx, a.Writer,
			commands.DeleteEnvironment{TenantRef: commands.TenantRef{TenantID: in.ID}, Name: in.Environment})
		return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
	})
}
