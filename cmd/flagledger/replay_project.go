package main

import (
	"context"
	"strings"

	"flagledger/events"
	"flagledger/queries"
)

// projectThen is a project as it was.
type projectThen struct {
	ID          string `json:"id"`
	TenantID    string `json:"tenantId"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Color       string `json:"color"`
}

// after is the project after a fact of its stream; nil before its creation and once it is deleted. The creation may be
// unknown to this program.
func (p *projectThen) after(stream string, fact events.ProjectFact) *projectThen {
	next := projectThen{ID: strings.TrimPrefix(stream, events.ProjectStream(""))}
	if p != nil {
		next = *p
	}
	switch fact := fact.(type) {
	case events.ProjectCreated:
		next = projectThen{fact.ID, fact.TenantID, fact.Name, fact.Description, fact.Color}
	case events.ProjectUpdated:
		fact.Name.Apply(&next.Name)
		fact.Description.Apply(&next.Description)
		fact.Color.Apply(&next.Color)
	case events.ProjectDeleted:
		return nil
	}
	return &next
}

func (r *replay) printProject(ctx context.Context, m queries.Moment) error {
	var p *projectThen
	last, err := r.foldUntil(ctx, m, func(e events.Recorded) bool {
		fact, known := e.Fact.(events.ProjectFact)
		if known {
			p = p.after(e.Stream, fact)
		}
		return known
	})
	if err != nil {
		return err
	}
	if r.form.json {
		return r.putJSON(struct {
			Version  events.Revision `json:"version"`
			Recorded string          `json:"recorded"`
			Project  *projectThen    `json:"project"`
		}{last.Revision, last.At.UTC().Format(events.RecordedFormat), p})
	}
	r.stateHeader("Project "+*r.Project, p != nil, last, m.At)
	if p != nil {
		r.field("name", p.Name)
		r.field("description", p.Description)
		r.field("color", p.Color)
		r.field("tenant", p.TenantID)
	}
	return nil
}
