package queries

import (
	"time"

	"flagledger/events"
)

// Lifecycle is the stage of a flag between its creation and its end.
type Lifecycle string

// A flag has the first of these lifecycles that applies.
const (
	Archived Lifecycle = "archived" // by its status
	// Fresh flags were never evaluated, nor on behalf of another flag, and were created within the stale time.
	Fresh Lifecycle = "new"
	// Unused flags were neither evaluated, nor prefetched, nor evaluated on behalf of another flag for the stale time.
	Unused Lifecycle = "unused"
	// Settled flags did not change in the stale time, and each environment evaluated them with one outcome, also on behalf
	// of other flags.
	Settled Lifecycle = "settled"
	InUse   Lifecycle = "live" // any other
)

// Staleness says when a flag counts as stale: after this time without use or change.
type Staleness struct {
	Now   time.Time
	After time.Duration
	// DependenciesChanged returns when a segment or another flag last changed that a flag depends on, by the flag's key;
	// zero without one. It may be nil.
	DependenciesChanged func(key string) time.Time
}

// changed returns when a flag last changed, or what it depends on.
func (s Staleness) changed(f *lifecycleInputs) time.Time {
	if s.DependenciesChanged != nil {
		if at := s.DependenciesChanged(f.Key); at.After(f.UpdatedAt) {
			return at
		}
	}
	return f.UpdatedAt
}

func (s Staleness) start() time.Time { return s.Now.Add(-s.After) }

// lifecycleInputs holds what determines a flag's lifecycle.
type lifecycleInputs struct {
	FlagUse
	Key                  string
	Status               string
	Permanent            bool
	CreatedAt, UpdatedAt time.Time
}

func (f lifecycleInputs) lifecycle(s Staleness) Lifecycle {
	start := s.start()
	within := func(t *time.Time) bool { return t != nil && t.After(start) }
	evaluated := within(f.LastEvaluated) || within(f.LastRequired)
	switch {
	case f.Status == string(events.ArchivedFlag):
		return Archived
	case f.LastEvaluated == nil && f.LastRequired == nil && f.CreatedAt.After(start):
		return Fresh
	case f.Permanent:
		return InUse
	case !evaluated && !within(f.LastPrefetched):
		return Unused
	case evaluated && !s.changed(&f).After(start) &&
		(f.VariedHour == nil || f.VariedHour.Before(start.UTC().Truncate(time.Hour))):
		return Settled
	default:
		return InUse
	}
}

// since returns when a flag was last evaluated, also on behalf of another one, prefetched or changed.
func (f lifecycleInputs) since() time.Time {
	since := f.UpdatedAt
	for _, t := range []*time.Time{f.LastEvaluated, f.LastPrefetched, f.LastRequired} {
		if t != nil && t.After(since) {
			since = *t
		}
	}
	return since
}

func (f Flag) inputs() lifecycleInputs {
	return lifecycleInputs{f.FlagUse, f.Key, f.Status, f.Permanent, f.CreatedAt, f.UpdatedAt}
}

// Lifecycle returns the lifecycle of the flag.
func (f Flag) Lifecycle(s Staleness) Lifecycle { return f.inputs().lifecycle(s) }
