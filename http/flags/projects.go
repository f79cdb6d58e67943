package flags

import (
	"context"
	"errors"
	"net/http"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/rest"
	"flagledger/queries"
)

// ProjectFields are what a project's facts say of it.
type ProjectFields struct {
	ID          string            `json:"id" example:"0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"`
	Name        string            `json:"name" example:"Checkout"`
	Description string            `json:"description" example:"Everything between the basket and the receipt"`
	Color       string            `json:"color" example:"#6b7280"`
	CreatedAt   rest.RecordedTime `json:"createdAt"`
	UpdatedAt   rest.RecordedTime `json:"updatedAt"`
}

type projectBody struct {
	ProjectFields
	FlagCount int `json:"flagCount" doc:"Flags that are not deleted" example:"3"`
}

// ShowProject shows a project as responses and the command line do.
func ShowProject(p state.Project) ProjectFields {
	return ProjectFields{
		ID: p.ID, Name: p.Name, Description: p.Description, Color: p.Color,
		CreatedAt: rest.RecordedTime(p.CreatedAt), UpdatedAt: rest.RecordedTime(p.UpdatedAt),
	}
}

func showProject(p queries.Project) projectBody {
	return projectBody{ShowProject(p.State()), p.FlagCount}
}

type projectOutput struct {
	rest.Changed
	Location string `header:"Location"`
	Body     projectBody
}

// ProjectPath names a project.
type ProjectPath struct {
	rest.TenantInput
	ID string `path:"projectId" example:"0198c5a1-2f0d-7c3b-8e64-1a9b7d5c3e20"`
}

type createProjectBody struct {
	Name        string                `json:"name" minLength:"1" maxLength:"200" example:"Checkout"`
	Description string                `json:"description,omitempty" maxLength:"2000" example:"Everything between the basket and the receipt"`
	Color       rest.Optional[string] `json:"color,omitzero" pattern:"^#[0-9a-fA-F]{6}$" patternDescription:"a color of the form #rrggbb" doc:"The default is #6b7280" example:"#6b7280"`
}

type updateProjectBody struct {
	Name        rest.Optional[string] `json:"name,omitzero" minLength:"1" maxLength:"200" example:"Checkout"`
	Description rest.Optional[string] `json:"description,omitzero" maxLength:"2000" example:"Everything between the basket and the receipt" nullable:"true" doc:"null clears it"`
	Color       rest.Optional[string] `json:"color,omitzero" pattern:"^#[0-9a-fA-F]{6}$" patternDescription:"a color of the form #rrggbb" example:"#0ea5e9"`
}

func (a *API) addProjects() {
	const tag = "Projects"
	reading := rest.Access{Who: rest.Viewer, Scope: events.ProjectsRead}
	changing := rest.Access{Who: rest.Developer, Scope: events.ProjectsWrite}
	listing := reading
	listing.RequireTenant = true
	rest.Register(a.Core, listing, rest.Operation("GET", "/api/v1/projects", "list-projects", tag,
		"The tenant's projects"),
		func(ctx context.Context, in *struct {
			rest.TenantInput
			rest.PageInput
			rest.HistoricalListInput
		}) (*rest.ListOutput[projectBody], error) {
			list, err := a.Queries.Projects(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.At, in.Page())
			return rest.ListResponse(ctx, in.PageInput, list, err, showProject)
		})
	create := rest.Operation("POST", "/api/v1/projects", "create-project", tag, "Create a project")
	create.Description = "A tenant may have 1,000 projects; a further one is 409."
	create.DefaultStatus = http.StatusCreated
	create.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, changing, create, func(ctx context.Context, in *struct {
		rest.TenantInput
		rest.ChangeInput
		Body createProjectBody
	}) (*projectOutput, error) {
		tenant := rest.PrincipalOf(ctx).Tenant
		projects, release, err := a.Writer.Reserve(ctx, "projects of "+tenant.ID(), commands.MaxProjects, tenant.Projects)
		if err != nil {
			return nil, err
		}
		defer release()
		out, err := a.writeProject(ctx, commands.CreateProject{
			ID:          rest.NewID(ctx),
			TenantID:    tenant.ID(),
			Name:        in.Body.Name,
			Description: in.Body.Description,
			Color:       in.Body.Color.Sent,
			Projects:    projects,
		})
		if err != nil {
			return nil, err
		}
		out.Location = rest.PublicPath(ctx, "/api/v1/projects/"+out.Body.ID)
		return out, nil
	})
	rest.Register(a.Core, reading, rest.Operation("GET", "/api/v1/projects/{projectId}", "get-project", tag,
		"One project"),
		func(ctx context.Context, in *struct {
			ProjectPath
			rest.HistoricalListInput
		}) (*projectOutput, error) {
			project, err := a.Queries.Project(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.ID, in.At)
			return &projectOutput{Body: showProject(project)}, err
		})
	rest.Register(
		a.Core,
		changing,
		rest.Operation("PATCH", "/api/v1/projects/{projectId}", "update-project", tag, "Change the sent fields of a project"),
		func(ctx context.Context, in *struct {
			ProjectPath
			rest.ChangeInput
			Body updateProjectBody
		}) (*projectOutput, error) {
			return a.writeProject(ctx, commands.UpdateProject{
				ProjectRef:  projectRef(ctx, in.ID),
				Name:        in.Body.Name.Sent,
				Description: in.Body.Description.Sent,
				Color:       in.Body.Color.Sent,
			})
		},
	)
	remove := rest.Operation("DELETE", "/api/v1/projects/{projectId}", "delete-project", tag,
		"Delete a project that has no flags")
	remove.DefaultStatus = http.StatusNoContent
	remove.Errors = []int{http.StatusConflict}
	rest.Register(a.Core, changing, remove, func(ctx context.Context, in *struct {
		ProjectPath
		rest.ChangeInput
	}) (*rest.NoContent, error) {
		// The read model is shared by all nodes: the snapshot may still count a flag that another node has just deleted.
		project, err := a.Queries.Project(ctx, rest.PrincipalOf(ctx).Tenant.ID(), in.ID, time.Time{})
		if err != nil && !errors.Is(err, queries.ErrNotFound) {
			return nil, err
		}
		_, done, err := rest.Do(ctx, a.Writer,
			commands.DeleteProject{ProjectRef: projectRef(ctx, in.ID), FlagCount: project.FlagCount})
		return &rest.NoContent{Changed: rest.ChangeHeaders(done)}, err
	})
}

// hasProject reports whether the call's tenant has a project. It also asks the read model, for a project that another
// node has just created.
func (a *API) hasProject(ctx context.Context, id string) (bool, error) {
	tenant := rest.PrincipalOf(ctx).Tenant
	if _, known := tenant.ProjectFlags(id); known {
		return true, nil
	}
	_, err := a.Queries.Project(ctx, tenant.ID(), id, time.Time{})
	if errors.Is(err, queries.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func projectRef(ctx context.Context, id string) commands.ProjectRef {
	return commands.ProjectRef{TenantID: rest.PrincipalOf(ctx).Tenant.ID(), ID: id}
}

func (a *API) writeProject(ctx context.Context, cmd commands.Command[state.Project]) (*projectOutput, error) {
	p, done, err := rest.Do(ctx, a.Writer, cmd)
	if err != nil {
		return nil, err
	}
	count, _ := rest.PrincipalOf(ctx).Tenant.ProjectFlags(p.ID)
	return &projectOutput{Changed: rest.ChangeHeaders(done), Body: projectBody{ShowProject(p), count}}, nil
}
