package commands

import (
	"regexp"

	"flagledger/events"
	"flagledger/events/state"
)

// DefaultColor is the color of a project that is created without one.
const DefaultColor = "#6b7280"

var colorPattern = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// MaxProjects limits the projects of a tenant, because all nodes hold them. See Writer.Reserve for its precision.
const MaxProjects = 1000

// CreateProject creates a project.
type CreateProject struct {
	ID          string // new
	TenantID    string
	Name        string
	Description string
	Color       *string // nil: DefaultColor
	Projects    int     // the tenant's number, from Writer.Reserve with MaxProjects
}

func (c CreateProject) Stream() string { return events.ProjectStream(c.ID) }

func (c CreateProject) Tenant() string { return c.TenantID }

func (c CreateProject) Decide(state.Project) ([]events.Fact, error) {
	created := events.ProjectCreated{
		ID: c.ID, TenantID: c.TenantID, Name: c.Name, Description: c.Description, Color: DefaultColor,
	}
	assignSent(&created.Color, c.Color)
	if err := checkProject(created); err != nil {
		return nil, err
	}
	if c.Projects >= MaxProjects {
		return nil, Refuse(Conflict, "the tenant has %d projects, which is the limit: delete one first", c.Projects)
	}
	return []events.Fact{created}, nil
}

// checkProject refuses invalid fields of a project.
func checkProject(p events.ProjectCreated) error {
	wrong := FieldErrors{}
	CheckText(wrong, "name", p.Name, 1, maxName)
	CheckText(wrong, "description", p.Description, 0, maxDescription)
	wrong.Check(colorPattern.MatchString(p.Color), "color", "must be a color of the form #rrggbb")
	return wrong.Err()
}

// ProjectRef identifies a project of a tenant.
type ProjectRef struct {
	TenantID string
	ID       string
}

func (r ProjectRef) Stream() string { return events.ProjectStream(r.ID) }

func (r ProjectRef) Tenant() string { return r.TenantID }

// admit returns NotFound for a project that does not exist or belongs to another tenant.
func (r ProjectRef) admit(p state.Project) error {
	if !p.Exists || p.TenantID != r.TenantID {
		return Refuse(NotFound, "no project has the id %q", r.ID)
	}
	return nil
}

// UpdateProject changes the sent fields of a project; nil leaves a field unchanged.
type UpdateProject struct {
	ProjectRef
	Name        *string
	Description *string
	Color       *string
}

func (c UpdateProject) Decide(p state.Project) ([]events.Fact, error) {
	if err := c.admit(p); err != nil {
		return nil, err
	}
	next := p.ProjectCreated
	assignSent(&next.Name, c.Name)
	assignSent(&next.Description, c.Description)
	assignSent(&next.Color, c.Color)
	if err := checkProject(next); err != nil {
		return nil, err
	}
	return projectChanges(p.ProjectCreated, next), nil
}

// projectChanges returns the fact that turns one project into another; none if they are equal.
func projectChanges(from, to events.ProjectCreated) []events.Fact {
	updated := events.ProjectUpdated{
		Name:        changed(from.Name, &to.Name, equal),
		Description: changed(from.Description, &to.Description, equal),
		Color:       changed(from.Color, &to.Color, equal),
	}
	if updated == (events.ProjectUpdated{}) {
		return nil
	}
	return []events.Fact{updated}
}

// DeleteProject deletes a project that has no flags.
type DeleteProject struct {
	ProjectRef
	// FlagCount is the project's number of flags in the read model. It may miss a concurrent one, which
	// DeletedProjects then removes from the project.
	FlagCount int
}

func (c DeleteProject) Decide(p state.Project) ([]events.Fact, error) {
	if err := c.admit(p); err != nil {
		return nil, err
	}
	if c.FlagCount > 0 {
		return nil, Refuse(Conflict, "the project still has flags: %d", c.FlagCount)
	}
	return []events.Fact{events.ProjectDeleted{}}, nil
}

// LeaveProject removes a flag from its project. It does nothing if the flag is no longer in it.
type LeaveProject struct{ FlagRef }

func (c LeaveProject) Decide(f state.Flag) ([]events.Fact, error) {
	if !f.Exists || f.ProjectID != c.ProjectID {
		return nil, nil
	}
	return []events.Fact{events.FlagUpdated{ProjectID: &events.Change[string]{From: f.ProjectID}}}, nil
}
