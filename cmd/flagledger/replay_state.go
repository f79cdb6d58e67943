package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flagledger/events"
	"flagledger/queries"
)

// printState prints what was so at a moment.
func (r *replay) printState(ctx context.Context, m queries.Moment) (err error) {
	if m.Version == 0 {
		switch err := queries.WaitUntilPast(ctx, r.store, m.At); {
		case errors.Is(err, queries.ErrFuture):
			return fmt.Errorf("replay: --at %w; it is %q", err, *r.At)
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case err != nil:
			return fmt.Errorf("replay: %w", err)
		}
	}
	switch {
	case r.Flag != nil:
		err = r.printFlag(ctx, m)
	case r.Project != nil:
		err = r.printProject(ctx, m)
	default:
		err = r.printTenant(ctx, m.At)
	}
	if err == nil {
		err = r.screen.Flush()
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	return err
}

// foldUntil adds up the facts of the stream up to a moment, and returns the last. Those that this program does not know
// are left out, which it tells.
func (r *replay) foldUntil(
	ctx context.Context, m queries.Moment, apply func(events.Recorded) (known bool),
) (last events.Recorded, err error) {
	var omitted omittedFacts
	began := false
	for e, err := range r.store.Read(ctx, r.stream(), 0) {
		if err != nil {
			return last, err
		}
		if !began && r.Project != nil && !r.belongs(e) {
			break // another tenant's
		}
		began = true
		if m.Before(e) {
			break
		}
		if last = e; !apply(e) {
			omitted.note(e)
		}
	}
	r.warn(omitted)
	switch {
	case !began:
		return last, r.notFound()
	case last.Revision == 0:
		return last, fmt.Errorf("%w by then", r.notFound())
	case m.Version > last.Revision:
		return last, fmt.Errorf("there is no version %d: the last is %d", m.Version, last.Revision)
	}
	return last, nil
}

// omittedFacts are facts that a state leaves out, because this program does not know them.
type omittedFacts struct {
	count int
	first events.Recorded
}

func (o *omittedFacts) note(e events.Recorded) {
	if o.count++; o.count == 1 {
		o.first = e
	}
}

func (r *replay) warn(o omittedFacts) {
	if o.count > 0 {
		r.log.Warn("what is printed leaves out facts that this release does not know", "facts", o.count, "first",
			o.first.Name, "stream", o.first.Stream, "version", o.first.Revision)
	}
}

// environmentsAt are the environments of the tenant at a time, in the order of their creation.
func (r *replay) environmentsAt(ctx context.Context, at time.Time) (list []events.EnvironmentRef, err error) {
	for e, err := range r.store.Read(ctx, events.TenantStream(r.Tenant), 0) {
		if err != nil {
			return nil, err
		}
		if e.At.After(at) {
			break
		}
		list = environmentsAfter(list, e.Fact)
	}
	return list, nil
}

func environmentsAfter(list []events.EnvironmentRef, fact events.Fact) []events.EnvironmentRef {
	switch fact := fact.(type) {
	case events.EnvironmentAdded:
		return append(list, fact.Environment)
	case events.EnvironmentDeleted:
		return slices.DeleteFunc(list, func(e events.EnvironmentRef) bool { return e.ID == fact.Environment.ID })
	}
	return list
}

// stateHeader tells what is printed, and of when. last is the last fact of it.
func (r *replay) stateHeader(what string, exists bool, last events.Recorded, at time.Time) {
	words := []span{{bold, what}}
	if !exists {
		words = append(words, span{red, "  deleted"})
	}
	words = append(words, span{plain, fmt.Sprintf("  version %d", last.Revision)},
		span{dim, " of " + last.At.UTC().Format(events.RecordedFormat)})
	if !at.IsZero() {
		words = append(words, span{dim, ", at " + at.UTC().Format(time.RFC3339Nano)})
	}
	r.screen.line(words...)
	r.screen.line()
}

const fieldWidth = 14

// field prints a field, unless it is empty.
func (r *replay) field(name, value string) {
	if value != "" {
		r.screen.put(span{plain, "  "})
		r.screen.padded(fieldWidth, span{dim, name})
		r.screen.line(span{plain, value})
	}
}
