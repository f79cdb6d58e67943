package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"flagledger/events"
	"flagledger/events/state"
	"flagledger/http/flags"
	"flagledger/http/segments"
	"flagledger/queries"
)

// fold applies the stream's facts up to a moment, and returns the last of them.
func (r *replay) fold(ctx context.Context, m queries.Moment, apply func(events.Recorded)) (events.Recorded, error) {
	var last events.Recorded
	if m.Version == 0 {
		switch err := queries.WaitUntilPast(ctx, r.store, m.At); {
		case errors.Is(err, queries.ErrFuture):
			return last, fmt.Errorf("replay: --at %w; it is %q", err, *r.At)
		case err != nil:
			return last, fmt.Errorf("replay: %w", err)
		}
	}
	for e, err := range r.streamFacts(ctx) {
		if err != nil {
			return last, err
		}
		if m.Before(e) {
			break
		}
		last = e
		if r.known(e) {
			apply(e)
		}
	}
	switch {
	case last.Revision == 0:
		return last, fmt.Errorf("%w by then", r.notFound())
	case m.Version > last.Revision:
		return last, fmt.Errorf("there is no version %d: the last is %d", m.Version, last.Revision)
	}
	return last, nil
}

// known reports whether this program knows a fact, and warns of the first that it does not.
func (r *replay) known(e events.Recorded) bool {
	_, err := state.Describe(e)
	if err != nil && !r.incomplete {
		r.incomplete = true
		r.log.Warn("what is printed leaves out facts that this release does not know", "first", e.Name, "stream", e.Stream,
			"version", e.Revision)
	}
	return err == nil
}

// printFlag prints the flag as the API answers a version.
func (r *replay) printFlag(ctx context.Context, m queries.Moment) error {
	var f state.Flag
	last, err := r.fold(ctx, m, f.Apply)
	if err != nil {
		return err
	}
	var t state.Tenant
	for e, err := range r.store.Read(ctx, events.TenantStream(r.Tenant), 0) {
		if err != nil {
			return err
		}
		if e.At.After(cmp.Or(m.At, last.At)) {
			break
		}
		if r.known(e) {
			t.Apply(e)
		}
	}
	return r.write(flags.FlagVersion(f, t.Environments))
}

// printSegment prints the segment as the API answers a version, and its members.
func (r *replay) printSegment(ctx context.Context, m queries.Moment) error {
	var s state.Segment
	if _, err := r.fold(ctx, m, s.Apply); err != nil {
		return err
	}
	return r.write(segments.SegmentVersion(&s))
}

// printProject prints the project, which is null if it is deleted.
func (r *replay) printProject(ctx context.Context, m queries.Moment) error {
	var p state.Project
	last, err := r.fold(ctx, m, p.Apply)
	if err != nil {
		return err
	}
	p.ID = *r.Project // its creation may be unknown
	shown := new(flags.ShowProject(p))
	if _, deleted := last.Fact.(events.ProjectDeleted); deleted {
		shown = nil
	}
	text, err := events.Marshal(struct {
		Version   events.Revision      `json:"version"`
		Timestamp string               `json:"timestamp"`
		Project   *flags.ProjectFields `json:"project"`
	}{last.Revision, last.At.UTC().Format(events.RecordedFormat), shown})
	if err != nil {
		return err
	}
	return r.write(text)
}
