package models

import (
	"encoding/json"

	"flagledger/events"
)

// Description is what the audit trail tells of a fact by itself.
type Description struct {
	ResourceType string
	ResourceID   string
	ResourceName string          // where the fact tells it
	Environment  string          // its name then; empty for a fact that is of none
	Changes      json.RawMessage // an object that has from and to of each field that changed
}

// Describe describes a fact as the audit trail does. The error is for a fact that this program does not know, or that
// does not belong into its stream.
func Describe(e events.Recorded) (Description, error) {
	if e.Err != nil {
		return Description{}, e.Err
	}
	describe, known := audited.Of(e.Stream)
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
