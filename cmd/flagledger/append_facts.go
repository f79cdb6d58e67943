package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"flagledger/events"
)

// appendMissing appends the events that a store lacks, in order. held has the last revision of each stream in the
// store, and is updated. done is called with each event once it and all earlier ones are in the store.
func appendMissing(
	ctx context.Context, all iter.Seq2[events.Recorded, error], to events.Store, accept AcceptTimes,
	held map[string]events.Revision, done func(events.Recorded),
) error {
	for run, err := range runs(all) {
		if err != nil {
			return err
		}
		stream, last := run[0].Stream, run[len(run)-1]
		var batch []events.Event
		for _, e := range run {
			if e.Revision > held[stream] {
				e.Stored.AcceptUntil = accept.AcceptTimesUntil
				batch = append(batch, events.Event{ID: e.ID, Metadata: e.Metadata, Fact: e.Stored})
			}
		}
		if len(batch) > 0 {
			if err := appendCopied(ctx, to, stream, held[stream], batch); err != nil {
				return err
			}
			held[stream] = last.Revision
		}
		done(last)
	}
	return nil
}

// appendCopied appends, and retries an unknown outcome: the store applies an append once. It fails if the stream has
// other facts.
func appendCopied(
	ctx context.Context, to events.Store, stream string, expected events.Revision, batch []events.Event,
) error {
	for {
		_, err := to.Append(ctx, stream, expected, batch)
		switch {
		case errors.Is(err, events.ErrConflict):
			return fmt.Errorf("the stream %s has other facts in the target store", stream)
		case !errors.Is(err, events.ErrUnavailable) || ctx.Err() != nil:
			return err
		}
	}
}

// Limits of one append: EventStoreDB takes 1 MiB.
const (
	runEvents = 100
	runBytes  = events.MaxEventBytes / 2
)

// runs groups consecutive events of one stream for an append. A run is valid until the next.
func runs(all iter.Seq2[events.Recorded, error]) iter.Seq2[[]events.Recorded, error] {
	return func(yield func([]events.Recorded, error) bool) {
		var run []events.Recorded
		size := 0
		for e, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			size += len(e.Stored.Data)
			if n := len(run); n > 0 && (n == runEvents || size > runBytes || run[0].Stream != e.Stream) {
				if !yield(run, nil) {
					return
				}
				run, size = run[:0], len(e.Stored.Data)
			}
			run = append(run, e)
		}
		if len(run) > 0 {
			yield(run, nil)
		}
	}
}
