package models

import (
	"encoding/json"

	"flagledger/events"
)

// Description is the audit trail's view of a single fact.
type Description struct {
	ResourceType string
	ResourceID   string
	ResourceName string          // if the fact has it
	Environment  string          // its name at that time; empty if the fact has no environment
	Changes      json.RawMessage // an object with from and to of each changed field
}

// Describe describes a fact as the audit trail does. It returns an error for an unknown fact, or one in the wrong
// stream.
func Describe(e events.Recorded) (Description, error) {
	if e.Err != nil {
		return Description{}, e.Err
	}
	describe, known := audited.Lookup(e.Stream)
	if !known {
		return Description{}, notOfStream(e)
	}
	entry, err := describe(e)
	if err != nil {
		return Description{}, err
	}
	d := Description{ResourceType: entry.resourceType, ResourceID: entry.resourceID}
	if entry.name != nil && !entry.isRole {
		d.ResourceName = *entry.name
	}
	if entry.environment != nil {
		d.Environment = *entry.environment
	}
	d.Changes, err = events.Marshal(entry.changes)
	return d, err
}
