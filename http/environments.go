package http

import (
	"context"
	"net/http"
	"net/url"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/queries"
)

type environmentOutput struct {
	Changed
	Location string `header:"Location"`
	Body     environmentBody
}

type environmentBody struct {
	Environment string `json:"environment" pattern:"^[a-z0-9][a-z0-9-]{0,62}$" example:"staging"`
}

func (a *API) addEnvironments() {
	const tag, path = "Tenants", "/api/v1/tenants/{tenantId}/environments"
	names := operation("GET", path, "list-environments", tag, "The names of a tenant's environments")
	register(a, access{who: viewer}, withExamples(names, nil, []string{"production", "development"}),
		func(ctx context.Context, in *struct {
			TenantPath
			PageInput
			PastListInput
		}) (*listOutput[string], error) {
			list, err := a.Queries.Environments(ctx, in.ID, in.At, in.page())
			return listResponse(ctx, in.PageInput, list, err, func(e queries.Environment) string { return e.Name })
		})
	add := operation("POST", path, "add-environment", tag, "Add an environment, in which all flags are off")
	add.DefaultStatus = http.StatusCreated
	add.Errors = []int{http.StatusConflict}
	register(a, access{who: admin}, add, func(ctx context.Context, in *struct {
		TenantChange
		Body environmentBody
	}) (*environmentOutput, error) {
		_, done, err := do(ctx, a.Writer, commands.AddEnvironment{
			TenantRef: commands.TenantRef{
				TenantID: in.ID,
			},
			Environment: events.EnvironmentRef{ID: newID(ctx), Name: in.Body.Environment},
			Now:         a.Now(),
		})
		return &environmentOutput{
			Changed:  changeHeaders(done),
			Location: publicPath(ctx, "/api/v1/tenants/"+url.PathEscape(in.ID)+"/environments/"+in.Body.Environment),
			Body:     in.Body,
		}, err
	})
	remove := operation("DELETE", path+"/{environment}", "delete-environment", tag,
		"Delete an environment and the flags' state in it")
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = []int{http.StatusNotFound, http.StatusConflict}
	register(a, access{who: admin}, remove, func(ctx context.Context, in *struct {
		TenantChange
		Environment string `path:"environment" example:"staging"`
	}) (*noContent, error) {
		_, done, err := do(ctx, a.Writer,
			commands.DeleteEnvironment{TenantRef: commands.TenantRef{TenantID: in.ID}, Name: in.Environment})
		return &noContent{changeHeaders(done)}, err
	})
}
