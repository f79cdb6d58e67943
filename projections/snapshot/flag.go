package snapshot

import (
	"slices"
	"unique"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
	"flagledger/projections/usage"
)

// Flag is a flag compiled for evaluation, with its state. It is immutable: each event makes a new one.
type Flag struct {
	evaluation.Flag
	bytes uint32      // see state.Flag.Bytes
	usage *usage.Flag // of all Flags from the flag's creation to its deletion
}

// Usage returns what counts the flag's evaluations, from its creation to its deletion.
func (f *Flag) Usage() *usage.Flag { return f.usage }

// newFlag compiles a state, which nothing else has and nothing changes from then on. The error is that of
// evaluation.Compile: the flag can be used all the same.
func newFlag(s *state.Flag, environments []events.EnvironmentRef, before *Flag) (*Flag, error) {
	shareTexts(s, environments)
	f := &Flag{bytes: uint32(s.Bytes())}
	var compiled *evaluation.Flag
	if before != nil {
		compiled, f.usage = &before.Flag, before.usage
	}
	if life := uint32(s.CreatedVersion); f.usage == nil || f.usage.Life() != life {
		f.usage = usage.NewFlag(s.Key, life)
	}
	var err error
	f.Flag, err = evaluation.Compile(s, environments, compiled)
	return f, err
}

// maxEnabled is how many environments a flag may be enabled in: as many as a tenant may have.
const maxEnabled = 100

// shareTexts makes a state of a flag use the texts that other flags of its tenant have too, so that they take memory
// once. If it is enabled in more than maxEnabled environments, it drops those that the tenant has no longer.
func shareTexts(s *state.Flag, environments []events.EnvironmentRef) {
	s.TenantID, s.ProjectID = unique.Make(s.TenantID).Value(), unique.Make(s.ProjectID).Value()
	var enabled state.EnvironmentSet
	for _, id := range s.Enabled {
		i := slices.IndexFunc(environments, func(e events.EnvironmentRef) bool { return e.ID == id })
		if i >= 0 {
			id = environments[i].ID
		}
		if i >= 0 || len(s.Enabled) <= maxEnabled {
			enabled = append(enabled, id)
		}
	}
	s.Enabled = enabled
}
