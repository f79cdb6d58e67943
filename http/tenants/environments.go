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

type environmentsBody struct {
	Environments []environmentSettings `json:"environments" maxItems:"100" doc:"The environments of the tenant, in the order of all lists"`
}

type environmentSettings struct {
	Name  string `json:"name" example:"production"`
	Color string `json:"color" pattern:"^#[0-9a-fA-F]{6}$" patternDescription:"a color of the form #rrggbb" example:"#e03131"`
}

type environmentsOutput struct {
	rest.Changed
	Body environmentsBody
}

func (a *API) addEnvironments() {
	a.addEnvironmentList()
	a.addEnvironmentSettings()
}

func (a *API) addEnvironmentList() {
	const tag, path = "Tenants", "/api/v1/tenants/{tenantId}/environments"
	names := rest.Operation("GET", path, "list-environments", tag, "The names of a tenant's environments")
	names.Description = "In the tenant's order, which `PUT .../environments/settings` sets."
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

func (a *API) addEnvironmentSettings() {
	const tag, path = "Tenants", "/api/v1/tenants/{tenantId}/environments/settings"
	example := map[string]any{"environments": []environmentSettings{{"production", "#e03131"}, {"development", "#1c7ed6"}}}
	get := rest.Operation("GET", path, "get-environment-settings", tag, "The order and colors of a tenant's environments")
	get.Description = "An environment that was added after the last arrangement comes last, with a default color."
	rest.Register(a.Core, rest.Access{Who: rest.Viewer}, rest.WithExamples(get, nil, example),
		func(ctx context.Context, in *struct {
			rest.TenantPath
			rest.HistoricalListInput
		}) (*environmentsOutput, error) {
			list, err := a.Queries.Environments(ctx, in.ID, in.At, queries.Page{})
			if err != nil {
				return nil, err
			}
			rows, err := list.All(ctx)
			out := &environmentsOutput{Body: environmentsBody{Environments: []environmentSettings{}}}
			for _, e := range rows {
				out.Body.Environments = append(out.Body.Environments, environmentSettings(e))
			}
			return out, err
		})
	set := rest.Operation("PUT", path, "set-environment-settings", tag,
		"Set the order and colors of a tenant's environments")
	set.Description = "Names each environment exactly once, in the new order. All lists of environments have this order."
	rest.Register(a.Core, rest.Access{Who: rest.Admin}, rest.WithExamples(set, example, example),
		func(ctx context.Context, in *struct {
			TenantChange
			Body environmentsBody
		}) (*environmentsOutput, error) {
			cmd := commands.ArrangeEnvironments{TenantRef: commands.TenantRef{TenantID: in.ID}}
			for _, e := range in.Body.Environments {
				cmd.Environments = append(cmd.Environments, commands.EnvironmentSetting(e))
			}
			tenant, done, err := rest.Do(ctx, a.Writer, cmd)
			if err != nil {
				return nil, err
			}
			out := &environmentsOutput{Changed: rest.ChangeHeaders(done)}
			for _, e := range tenant.Arrangement() {
				out.Body.Environments = append(out.Body.Environments, environmentSettings{e.Environment.Name, e.Color})
			}
			return out, nil
		})
}
