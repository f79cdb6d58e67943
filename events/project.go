package events

const projectStreams = "project-"

// ProjectStream returns the name of a project's stream.
func ProjectStream(id string) string { return projectStreams + id }

// ProjectFact is a fact of a project's stream.
//
//sumtype:decl
type ProjectFact interface {
	Fact
	projectFact()
}

// ProjectCreated creates a project.
type ProjectCreated struct {
	ID          string `json:"id"`
	TenantID    string `json:"tenantId"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Color       string `json:"color"`
}

// ProjectUpdated changes fields of a project.
type ProjectUpdated struct {
	Name        *Change[string] `json:"name,omitempty"`
	Description *Change[string] `json:"description,omitempty"`
	Color       *Change[string] `json:"color,omitempty"`
}

// ProjectDeleted deletes a project.
type ProjectDeleted struct{}

func (ProjectCreated) StoredName() string { return "project.created" }
func (ProjectUpdated) StoredName() string { return "project.updated" }
func (ProjectDeleted) StoredName() string { return "project.deleted" }

func (ProjectCreated) projectFact() {}
func (ProjectUpdated) projectFact() {}
func (ProjectDeleted) projectFact() {}
