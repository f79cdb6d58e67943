package models

import (
	"strings"

	"flagledger/events"
)

func auditProject(e events.Recorded) (auditEntry, error) {
	fact, ok := e.Fact.(events.ProjectFact)
	if !ok {
		return auditEntry{}, notOfStream(e)
	}
	changes := fieldChanges{}
	entry := auditEntry{
		resourceType: "project",
		resourceID:   strings.TrimPrefix(e.Stream, events.ProjectStream("")),
		part:         whole,
		changes:      changes,
	}
	switch fact := fact.(type) {
	case events.ProjectCreated:
		entry.name = &fact.Name
		changes.add("name", nil, fact.Name)
		if fact.Description != "" {
			changes.add("description", nil, fact.Description)
		}
		changes.add("color", nil, fact.Color)
	case events.ProjectUpdated:
		entry.name = to(fact.Name)
		addChange(changes, "name", fact.Name)
		addChange(changes, "description", fact.Description)
		addChange(changes, "color", fact.Color)
	case events.ProjectDeleted:
		entry.gone = "name"
	}
	return entry, nil
}
