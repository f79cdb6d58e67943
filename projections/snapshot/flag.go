package snapshot

import (
	"slices"
	"sync/atomic"
	"unique"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/projections/snapshot/evaluation"
)

// Flag is a flag compiled for evaluation, with its state and its counts. It is immutable but for its counts: each event
// makes a new one.
type Flag struct {
	evaluation.Flag
	bytes uint32              // see state.Flag.Bytes
	life  uint32              // the revision of the FlagCreated that it began with
	uses  atomic.Pointer[use] // in environments where it was counted; the next Flag of the same life has them too
}

// Result is what a flag of the snapshot serves, and can be counted.
type Result struct {
	evaluation.Result
	flag *Flag
}

// Evaluate evaluates the flag as evaluation.Flag does.
func (f *Flag) Evaluate(environmentID string, c *evaluation.Context) (Result, error) {
	r, err := f.Flag.Evaluate(environmentID, c)
	return Result{r, f}, err
}

// EvaluateShort is Evaluate with evaluation.ErrTooLarge if comparing takes more than some 200 µs.
func (f *Flag) EvaluateShort(environmentID string, c *evaluation.Context) (Result, error) {
	r, err := f.Flag.EvaluateShort(environmentID, c)
	return Result{r, f}, err
}

// next returns the flag after an event, nil if there is none. The error is that of evaluation.Compile: the flag can be
// used all the same.
func next(before *Flag, e events.Recorded, environments []events.EnvironmentRef) (*Flag, error) {
	var s state.Flag
	var compiled *evaluation.Flag
	if before != nil {
		s, compiled = before.State().Clone(), &before.Flag
	}
	s.Apply(e)
	if !s.Exists {
		return nil, nil
	}
	return newFlag(&s, environments, compiled)
}

// newFlag compiles a state, which nothing else has and nothing changes from then on.
func newFlag(
	s *state.Flag, environments []events.EnvironmentRef, before *evaluation.Flag,
) (*Flag, error) {
	shareTexts(s, environments)
	compiled, err := evaluation.Compile(s, environments, before)
	return &Flag{Flag: compiled, bytes: uint32(s.Bytes()), life: uint32(s.CreatedVersion)}, err
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
