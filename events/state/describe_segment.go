package state

import "flagledger/events"

func describeSegment(e events.Recorded) (Description, error) {
	_, key := events.ParseSegmentStream(e.Stream)
	fact, ok := e.Fact.(events.SegmentFact)
	if !ok || key == "" {
		return Description{}, notOfStream(e)
	}
	changes := Changes{}
	entry := Description{ResourceType: "segment", ResourceID: key, Part: whole, Changes: changes}
	switch fact := fact.(type) {
	case events.SegmentCreated:
		entry.Name = &fact.Name
		changes.add("name", nil, fact.Name)
		if fact.Description != "" {
			changes.add("description", nil, fact.Description)
		}
		if len(fact.Tags) > 0 {
			changes.add("tags", nil, fact.Tags)
		}
		if fact.Private {
			changes.add("private", nil, true)
		}
	case events.SegmentUpdated:
		entry.Name = to(fact.Name)
		addChange(changes, "name", fact.Name)
		addChange(changes, "description", fact.Description)
		if c := fact.Tags; c != nil {
			changes.add("tags", orEmpty(c.From), orEmpty(c.To))
		}
	case events.SegmentRulesChanged:
		addRules(changes, fact.Rules())
	case events.SegmentMembersAdded:
		changes.add(string(fact.List), nil, membersOrCount(fact.Members, fact.Hashes))
	case events.SegmentMembersRemoved:
		changes.add(string(fact.List), membersOrCount(fact.Members, fact.Hashes), nil)
	case events.SegmentForgotten:
	case events.SegmentDeleted:
		entry.Gone = "name"
	case events.SegmentReverted:
		changes.add("version", nil, fact.Version)
		if !fact.At.IsZero() {
			changes.add("at", nil, fact.At)
		}
	}
	return entry, nil
}

// membersOrCount returns members, or how many hashes there are in their place.
func membersOrCount(members, hashes []string) any {
	if len(hashes) > 0 {
		return len(hashes)
	}
	return orEmpty(members)
}
