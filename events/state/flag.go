// Package state holds what the facts of a stream add up to. Every event gives the next state, and no event can fail to.
package state

import (
	"maps"
	"slices"
	"time"

	"flagledger/events"
)

// StoredEvery is how many versions of a flag lie between two of its states that are kept.
const StoredEvery = 100

// Flag is the state of a flag's stream. Its JSON is kept, so that old states need not be added up from the first event.
type Flag struct {
	events.FlagCreated
	Exists      bool                     `json:"exists,omitempty"`
	Status      events.FlagStatus        `json:"status,omitempty"`
	Enabled     map[string]bool          `json:"enabled,omitempty"` // by environment id, as are the next
	Rules       map[string][]events.Rule `json:"rules,omitempty"`
	Fallthrough map[string]events.Serve  `json:"fallthrough,omitempty"`
	CreatedAt   time.Time                `json:"createdAt,omitzero"`
	UpdatedAt   time.Time                `json:"updatedAt,omitzero"` // when the store recorded the version
	Version     events.Revision          `json:"version"`
}

// Apply takes in an event of the flag's stream.
func (f *Flag) Apply(r events.Recorded) {
	if f.Enabled == nil {
		f.Enabled, f.Rules, f.Fallthrough = map[string]bool{}, map[string][]events.Rule{}, map[string]events.Serve{}
	}
	f.Version, f.UpdatedAt = r.Revision, r.At
	switch fact := r.Fact.(events.FlagFact).(type) {
	case events.FlagCreated:
		*f = Flag{
			FlagCreated: fact, Exists: true, Status: events.ActiveFlag, Enabled: map[string]bool{},
			Rules: map[string][]events.Rule{}, Fallthrough: map[string]events.Serve{},
			CreatedAt: r.At, UpdatedAt: r.At, Version: r.Revision,
		}
		f.Variations = slices.Clone(fact.Variations)
	case events.FlagUpdated:
		fact.Name.Apply(&f.Name)
		fact.DefaultValue.Apply(&f.DefaultValue)
		fact.Description.Apply(&f.Description)
		fact.Tags.Apply(&f.Tags)
		fact.ProjectID.Apply(&f.ProjectID)
		fact.Permanent.Apply(&f.Permanent)
	case events.FlagStatusChanged:
		f.Status = fact.To
	case events.FlagEnabled:
		f.Enabled[fact.Environment.ID] = true
	case events.FlagDisabled:
		delete(f.Enabled, fact.Environment.ID)
	case events.VariationAdded:
		f.Variations = append(f.Variations, fact.Variation)
	case events.VariationUpdated:
		if v := f.Variation(fact.ID); v != nil {
			fact.Name.Apply(&v.Name)
			fact.Value.Apply(&v.Value)
			fact.Description.Apply(&v.Description)
			fact.Weight.Apply(&v.Weight)
		}
	case events.VariationRemoved:
		f.Variations = slices.DeleteFunc(f.Variations, func(v events.Variation) bool { return v.ID == fact.Variation.ID })
	case events.RulesChanged:
		if rules := applyRules(f.Rules[fact.Environment.ID], fact); len(rules) > 0 {
			f.Rules[fact.Environment.ID] = rules
		} else {
			delete(f.Rules, fact.Environment.ID)
		}
	case events.FallthroughChanged:
		if fact.To == nil {
			delete(f.Fallthrough, fact.Environment.ID)
		} else {
			f.Fallthrough[fact.Environment.ID] = *fact.To
		}
	case events.FlagDeleted:
		f.Exists = false
	case events.FlagReverted:
		if fact.Variations != nil {
			f.Variations = events.OrderVariations(f.Variations, fact.Variations.To,
				func(v events.Variation) string { return v.ID })
		}
	}
}

// Clone returns a copy that shares nothing with the state that Apply changes.
func (f *Flag) Clone() Flag {
	c := *f
	c.Variations = slices.Clone(f.Variations)
	// rules are replaced, not changed
	c.Enabled, c.Rules, c.Fallthrough = maps.Clone(f.Enabled), maps.Clone(f.Rules), maps.Clone(f.Fallthrough)
	return c
}

// Variation returns a variation of the flag, nil for an id that none has.
func (f *Flag) Variation(id string) *events.Variation {
	for i := range f.Variations {
		if f.Variations[i].ID == id {
			return &f.Variations[i]
		}
	}
	return nil
}

// FallthroughIn returns what the flag serves in an environment if no rule matches, nil if it is not set.
func (f *Flag) FallthroughIn(environmentID string) *events.Serve {
	if serve, ok := f.Fallthrough[environmentID]; ok {
		return &serve
	}
	return nil
}

// applyRules returns the list of rules after a change.
func applyRules(before []events.Rule, change events.RulesChanged) []events.Rule {
	return events.ApplyRules(before, change, func(r events.Rule) string { return r.ID },
		func(r events.Rule) events.Rule { return r })
}
