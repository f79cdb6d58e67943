package rest

import (
	"context"
	"slices"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events/state"
	"flagledger/projections/snapshot"
)

// maxSegmentsChecked limits the segments that are looked for: rules that refer to as many are refused anyway.
const maxSegmentsChecked = 100

// maxSegmentKey is the length of the longest key of a segment.
const maxSegmentKey = 128

// UnusableSegments says why rules that were sent cannot refer to a segment. from is the key of the segment that has the
// rules, empty for a flag's.
func (a *Core) UnusableSegments(
	ctx context.Context, tenant *snapshot.Tenant, from string, sent []commands.NewRule,
) commands.SegmentErrors {
	var keys []string
	for _, r := range sent {
		for _, c := range r.Conditions {
			keys = append(keys, state.SegmentsOfCondition(c)...)
		}
	}
	return a.UnusableSegmentKeys(ctx, tenant, from, keys)
}

// UnusableSegmentKeys works like UnusableSegments for keys of segments.
func (a *Core) UnusableSegmentKeys(
	ctx context.Context, tenant *snapshot.Tenant, from string, keys []string,
) commands.SegmentErrors {
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	keys = keys[:min(len(keys), maxSegmentsChecked)]
	segments := tenant.Segments()
	unusable := segments.Unusable(from, keys, commands.MaxSegmentChain)
	for key := range unusable {
		if _, known := segments.Find(key); known || key == from || len(key) > maxSegmentKey {
			continue
		}
		if exists, err := writer.SegmentExists(ctx, a.Writer, tenant.ID(), key); err == nil && exists {
			delete(unusable, key) // another node has just created it
		}
	}
	return unusable
}
