package state

import (
	"time"

	"flagledger/events"
)

// Project is the state of a project's stream.
type Project struct {
	events.ProjectCreated
	Exists    bool
	CreatedAt time.Time
	UpdatedAt time.Time
	ChangedAt time.Time // by the clock of the node that made the last change
}

// Apply implements State.
func (p *Project) Apply(r events.Recorded) {
	p.UpdatedAt, p.ChangedAt = r.At, r.Time
	switch fact := r.Fact.(events.ProjectFact).(type) {
	case events.ProjectCreated:
		*p = Project{ProjectCreated: fact, Exists: true, CreatedAt: r.At, UpdatedAt: r.At, ChangedAt: r.Time}
	case events.ProjectUpdated:
		fact.Name.Apply(&p.Name)
		fact.Description.Apply(&p.Description)
		fact.Color.Apply(&p.Color)
	case events.ProjectDeleted:
		p.Exists = false
	}
}

// Clone implements State.
func (p *Project) Clone() Project { return *p }

// Size implements State.
func (p *Project) Size() int { return 512 + len(p.Name) + len(p.Description) }
