package events

import (
	"encoding/json"
	"slices"
)

// Prerequisite demands of another flag, in the same environment, that it is off, or that it is on and serves one of
// some values.
type Prerequisite struct {
	FlagKey string        `json:"flagKey"`
	Off     bool          `json:"off,omitempty"`
	Serves  []ServedValue `json:"serves,omitempty"` // one of them; empty if Off
}

// ServedValue is what a flag serves: exactly one of a variation and a value.
type ServedValue struct {
	VariationID string          `json:"variationId,omitempty"`
	Value       json.RawMessage `json:"value,omitempty"`
}

// NamesVariation reports whether the prerequisite names a variation of the other flag.
func (p Prerequisite) NamesVariation(id string) bool {
	return slices.ContainsFunc(p.Serves, func(s ServedValue) bool { return s.VariationID == id })
}

// PrerequisitesChanged changes what a flag requires of others in an environment. All of it must be met for the flag to
// be on there.
type PrerequisitesChanged struct {
	Environment EnvironmentRef `json:"environment"`
	From        []Prerequisite `json:"from"`
	To          []Prerequisite `json:"to"`
}

func (PrerequisitesChanged) StoredName() string { return "flag.prerequisites_changed" }

func (PrerequisitesChanged) flagFact() {}
