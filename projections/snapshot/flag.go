package snapshot

import (
	"encoding/json"
	"slices"

	"flagledger/events"
)

// Flag is a flag compiled for evaluation. It never changes: an event makes a new one.
type Flag struct {
	kind         events.FlagType
	status       events.FlagStatus
	defaultValue json.RawMessage
	projectID    string
	salt         string
	variations   []events.Variation
	total        uint64   // of the variations' weights
	enabled      []string // environment ids
	version      events.Revision
}

// Version is the number of the flag's last event.
func (f *Flag) Version() events.Revision { return f.version }

// evolve makes the flag that an event leaves: nil where there is none.
func evolve(before *Flag, e events.Recorded, fact events.FlagFact) *Flag {
	if created, ok := fact.(events.FlagCreated); ok {
		f := &Flag{
			kind: created.Type, status: events.ActiveFlag, defaultValue: created.DefaultValue, projectID: created.ProjectID, salt: created.Salt,
			variations: slices.Clone(created.Variations), version: e.Revision,
		}
		f.weigh()
		return f
	}
	if before == nil {
		return nil
	}
	f := *before
	f.version = e.Revision
	switch fact := fact.(type) {
	case events.FlagCreated:
	case events.FlagUpdated:
		if fact.DefaultValue != nil {
			f.defaultValue = fact.DefaultValue.To
		}
	case events.FlagStatusChanged:
		f.status = fact.To
	case events.FlagEnabled:
		f.enabled = append(slices.Clone(f.enabled), fact.Environment.ID)
	case events.FlagDisabled:
		f.enabled = slices.DeleteFunc(slices.Clone(f.enabled), func(id string) bool { return id == fact.Environment.ID })
	case events.VariationAdded:
		f.variations = append(slices.Clone(f.variations), fact.Variation)
	case events.VariationUpdated:
		f.variations = slices.Clone(f.variations)
		for i := range f.variations {
			if v := &f.variations[i]; v.ID == fact.ID {
				set(&v.Name, fact.Name)
				set(&v.Value, fact.Value)
				set(&v.Weight, fact.Weight)
			}
		}
	case events.VariationRemoved:
		f.variations = slices.DeleteFunc(slices.Clone(f.variations), func(v events.Variation) bool { return v.ID == fact.Variation.ID })
	case events.RulesChanged, events.FallthroughChanged:
	case events.FlagDeleted:
		return nil
	}
	f.weigh()
	return &f
}

func set[T any](field *T, c *events.Change[T]) {
	if c != nil {
		*field = c.To
	}
}

func (f *Flag) weigh() {
	f.total = 0
	for i := range f.variations {
		f.total += uint64(f.variations[i].Weight)
	}
}
