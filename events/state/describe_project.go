package state

import (
	"strings"

	"flagledger/events"
)

func describeProject(e events.Recorded) (Description, error) {
	fact, ok := e.Fact.(events.ProjectFact)
	if !ok {
		return Description{}, notOfStream(e)
	}
	changes := Changes{}
	entry := Description{
		ResourceType: "project",
		ResourceID:   strings.TrimPrefix(e.Stream, events.ProjectStream("")),
		Part:         whole,
		Changes:      changes,
	}
	switch fact := fact.(type) {
	case events.ProjectCreated:
		entry.Name = &fact.Name
		changes.add("name", nil, fact.Name)
		if fact.Description != "" {
			changes.add("description", nil, fact.Description)
		}
		changes.add("color", nil, fact.Color)
	case events.ProjectUpdated:
		entry.Name = to(fact.Name)
		addChange(changes, "name", fact.Name)
		addChange(changes, "description", fact.Description)
		addChange(changes, "color", fact.Color)
	case events.ProjectDeleted:
		entry.Gone = "name"
	}
	return entry, nil
}
