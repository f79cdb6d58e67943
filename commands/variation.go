package commands

import (
	"encoding/json"
	"slices"
	"strings"

	"flagledger/events"
	"flagledger/events/state"
)

const maxVariations = 100 // of a flag

// NewVariation is a variation to be created.
type NewVariation struct {
	ID          string // new
	Name        string
	Value       json.RawMessage `json:",omitempty"`
	Description string
	Weight      events.Weight
}

func (v NewVariation) variation() events.Variation {
	return events.Variation{ID: v.ID, Name: v.Name, Value: compact(v.Value), Description: v.Description, Weight: v.Weight}
}

// AddVariation adds a variation after the others.
type AddVariation struct {
	FlagRef
	Variation NewVariation
}

func (c AddVariation) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admit(f); err != nil {
		return nil, err
	}
	wrong := FieldErrors{}
	checkVariation(&f, wrong, "", "", c.Variation)
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if len(f.Variations) >= maxVariations {
		return nil, Refuse(Conflict, "a flag has at most %d variations", maxVariations)
	}
	return checkSizes(&f, events.VariationAdded{Variation: c.Variation.variation()})
}

// UpdateVariation changes the sent fields of a variation; nil leaves a field unchanged.
type UpdateVariation struct {
	FlagRef
	ID          string
	Name        *string
	Value       json.RawMessage `json:",omitempty"`
	Description *string
	Weight      *events.Weight
}

func (c UpdateVariation) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admit(f); err != nil {
		return nil, err
	}
	v := f.Variation(c.ID)
	if v == nil {
		return nil, Refuse(NotFound, "the flag %q has no variation %q", c.Key, c.ID)
	}
	next := *v
	assignSent(&next.Name, c.Name)
	if c.Value != nil {
		next.Value = compact(c.Value)
	}
	assignSent(&next.Description, c.Description)
	assignSent(&next.Weight, c.Weight)
	wrong := FieldErrors{}
	checkVariation(&f, wrong, "", c.ID,
		NewVariation{Name: next.Name, Value: next.Value, Description: next.Description, Weight: next.Weight})
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	updated := events.VariationUpdated{
		ID:          c.ID,
		Name:        changed(v.Name, c.Name, equal),
		Value:       changedValue(v.Value, c.Value),
		Description: changed(v.Description, c.Description, equal),
		Weight:      changed(v.Weight, c.Weight, equal),
	}
	if updated == (events.VariationUpdated{ID: c.ID}) {
		return nil, nil
	}
	return checkSizes(&f, updated)
}

// RemoveVariation removes a variation. It refuses if a rule or a fallthrough serves it, or another flag requires it.
type RemoveVariation struct {
	FlagRef
	ID string
	// Environments are the tenant's from the snapshot, which may miss a concurrent addition.
	Environments []events.EnvironmentRef
	Dependents   []Dependent
}

func (c RemoveVariation) Decide(f state.Flag) ([]events.Fact, error) {
	if err := c.admit(f); err != nil {
		return nil, err
	}
	v := f.Variation(c.ID)
	if v == nil {
		return nil, Refuse(NotFound, "the flag %q has no variation %q", c.Key, c.ID)
	}
	if places := servedIn(&f, c.Environments, c.ID); len(places) > 0 {
		return nil, Refuse(Conflict, "the variation is still served by %s", strings.Join(places, ", "))
	}
	removed := events.VariationRemoved{Variation: *v}
	next := afterFacts(&f, []events.Fact{removed})
	if err := checkDependents(c.Dependents, &f, &next); err != nil {
		return nil, err
	}
	return []events.Fact{removed}, nil
}

// checkVariation checks a variation against the flag's others; id is its own, or empty for a new one.
func checkVariation(f *state.Flag, wrong FieldErrors, prefix, id string, v NewVariation) {
	CheckText(wrong, prefix+"name", v.Name, 1, maxName)
	CheckText(wrong, prefix+"description", v.Description, 0, maxDescription)
	checkValue(wrong, prefix+"value", f.Type, v.Value)
	wrong.Check(v.Weight >= 0 && v.Weight <= events.MaxWeight, prefix+"weight",
		"must be a number from 0 to %d with at most three decimals", events.MaxWeight/1000)
	taken := slices.ContainsFunc(f.Variations,
		func(other events.Variation) bool { return other.Name == v.Name && (id == "" || other.ID != id) })
	wrong.Check(!taken, prefix+"name", "the flag has a variation of this name already")
}
