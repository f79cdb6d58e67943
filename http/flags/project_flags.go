package flags

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"flagledger/http/rest"
	"flagledger/queries"
)

const exampleProject = "0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"

// addProjectFlags adds the operations on the flags of one project: the tenant's operations, limited to the project.
func (a *API) addProjectFlags() {
	const tag, path = "Project flags", "/api/v1/flags/projects/{projectId}/flags"
	one := flagRoute{
		path:  path + "/{flagKey}",
		tag:   tag,
		idEnd: "-in-project",
		parameters: []*huma.Param{
			{
				Name:        "projectId",
				In:          "path",
				Required:    true,
				Description: "The project that the flag belongs to",
				Schema:      &huma.Schema{Type: huma.TypeString},
				Example:     exampleProject,
			},
		},
	}
	rest.Register(
		a.Core,
		rest.ReadFlagsAt,
		rest.Operation("GET", path, "list-flags-in-project", tag, "A project's flags by key"),
		func(ctx context.Context, in *struct {
			FlagFilter
			ProjectID string `path:"projectId" example:"0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"`
		}) (*rest.ListOutput[FlagBody], error) {
			out, err := a.listFlags(ctx, in.FlagFilter, in.ProjectID)
			if err == nil && out.Body.Empty {
				_, err = a.Queries.Project(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.ProjectID, in.At)
			}
			return out, err
		},
	)
	create := rest.Operation("POST", path, "create-flag-in-project", tag, "Create a flag in a project")
	create.Description = createFlagText
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	rest.Register(
		a.Core,
		rest.ChangeFlags,
		rest.WithExamples(create, exampleNewFlag, exampleCreatedFlag(exampleProject)),
		func(ctx context.Context, in *struct {
			rest.EnvironmentInput
			rest.ChangeInput
			ProjectID string `path:"projectId" example:"0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"`
			Body      NewFlag
		}) (*flagOutput, error) {
			if known, err := a.hasProject(ctx, in.ProjectID); err != nil || !known {
				return nil, cmp.Or(err, queries.ErrNotFound)
			}
			cmd := in.Body.command(ctx)
			cmd.ProjectID = in.ProjectID
			return a.createFlag(ctx, cmd, "/api/v1/flags/projects/"+in.ProjectID+"/flags/")
		},
	)
	a.addFlag(one, rest.ReadFlagsAt)
}
