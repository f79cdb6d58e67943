package queries

import (
	"context"
	"errors"
	"slices"
	"time"

	"flagledger/events"
	"flagledger/projections/snapshot"
	"flagledger/projections/snapshot/evaluation"
)

// CompiledFlagAt compiles a flag of VersionsAt for an environment: the current one if it has not changed since, or else
// one folded from its facts. It returns ErrNotFound if no flag had the key.
func (q *Queries) CompiledFlagAt(
	ctx context.Context, tenant *snapshot.Tenant, f VersionThen, environmentID string,
) (*evaluation.Flag, error) {
	if f.Version == 0 {
		return nil, ErrNotFound
	}
	// After a start the live flag is compiled for today's environments alone.
	exists := slices.ContainsFunc(tenant.Environments(),
		func(e events.EnvironmentRef) bool { return e.ID == environmentID })
	if live, ok := tenant.Flag(f.Key); ok && exists && f.Unchanged && live.Version() == f.Version {
		return &live.Flag, nil
	}
	then, err := q.FlagAt(ctx, tenant.ID(), f.Key, Moment{Version: f.Version})
	if err != nil {
		return nil, err
	}
	return evaluation.CompileIn(then, environmentID)
}

// AddDependenciesAt adds to dependencies of a time what some required flags and segments lead to in an environment, as
// it was at that time. Call WaitUntilCurrent for "flag." and "segment." first.
func (q *Queries) AddDependenciesAt(
	ctx context.Context, tenant *snapshot.Tenant, to *evaluation.Dependencies, required, segments []string,
	environmentID string, at time.Time,
) (*evaluation.Dependencies, error) {
	seen := map[string]bool{}
	for open := required; len(open) > 0; {
		unknown := slices.DeleteFunc(slices.Clone(open), func(key string) bool { return seen[key] || to.Find(key) != nil })
		open = nil
		if len(unknown) == 0 {
			break
		}
		versions, err := q.VersionsAt(ctx, tenant.ID(), unknown, at)
		if err != nil {
			return nil, err
		}
		var added []*evaluation.Flag
		for _, then := range versions {
			seen[then.Key] = true
			f, err := q.requiredFlagAt(ctx, tenant, then, environmentID, at)
			if errors.Is(err, ErrNotFound) {
				continue // it never was
			}
			if err != nil {
				return nil, err
			}
			added = append(added, f)
			open = append(open, f.Requires(environmentID)...)
			segments = append(segments[:len(segments):len(segments)], f.Segments(environmentID)...)
		}
		to = to.WithRequired(added...)
	}
	all, err := q.AddSegmentsAt(ctx, tenant, to.Segments(), segments, at)
	if err != nil || all == to.Segments() {
		return to, err
	}
	return to.WithSegments(all), nil
}

// requiredFlagAt works like CompiledFlagAt, but also returns a flag that was deleted at a time.
func (q *Queries) requiredFlagAt(
	ctx context.Context, tenant *snapshot.Tenant, then VersionThen, environmentID string, at time.Time,
) (*evaluation.Flag, error) {
	if then.Version > 0 {
		return q.CompiledFlagAt(ctx, tenant, then, environmentID)
	}
	last, err := q.FlagStateAt(ctx, tenant.ID(), then.Key, Moment{At: at})
	if err != nil {
		return nil, err
	}
	last.TenantID, last.Key = tenant.ID(), then.Key
	return evaluation.Deleted(&last), nil
}
