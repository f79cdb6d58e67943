package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"

	"flagledger/events"
	"flagledger/events/export"
)

// allEvents yields all events that a store holds now after a position.
func allEvents(ctx context.Context, store events.Store, after events.Position) iter.Seq2[events.Recorded, error] {
	return func(yield func(events.Recorded, error) bool) {
		for page, err := range store.Subscribe(ctx, after) {
			if err != nil {
				yield(events.Recorded{}, err)
				return
			}
			for _, e := range page.Events {
				if !yield(e, nil) {
					return
				}
			}
			if page.Live {
				return
			}
		}
	}
}

// readFacts opens a file of facts to be read.
func readFacts(path string, read func(*export.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	r, err := export.NewReader(file)
	if err != nil {
		return err
	}
	return read(r)
}

// tenantStreams tells the facts of a tenant from others, in the order of the log; all facts where there is no tenant.
type tenantStreams struct {
	tenantID string
	projects map[string]bool // its streams of projects, also of those that are deleted
}

// has reports whether a fact is the tenant's. The error is for a project of which this program cannot read whose it is.
func (t tenantStreams) has(e events.Recorded) (bool, error) {
	if t.tenantID == "" || e.Stream == events.TenantStream(t.tenantID) || strings.HasPrefix(e.Stream, events.FlagStream(t.tenantID, "")) {
		return true, nil
	}
	if strings.HasPrefix(e.Stream, events.ProjectStream("")) && e.Revision == 1 {
		if e.Err != nil {
			return false, fmt.Errorf("the tenant of %s is not known: %w", e.Stream, e.Err)
		}
		if created, ok := e.Fact.(events.ProjectCreated); ok && created.TenantID == t.tenantID {
			t.projects[e.Stream] = true
		}
	}
	return t.projects[e.Stream], nil
}

// appendMissing appends those of some events that a store lacks, in order. The store has held events of each stream, and done is called with an event up to which all is done.
func appendMissing(ctx context.Context, all iter.Seq2[events.Recorded, error], to events.Store, held map[string]events.Revision, done func(events.Recorded)) error {
	for run, err := range runs(all) {
		if err != nil {
			return err
		}
		stream, last := run[0].Stream, run[len(run)-1]
		var batch []events.Event
		for _, e := range run {
			if e.Revision > held[stream] {
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

// appendCopied repeats an append of unknown outcome, which applies it once.
func appendCopied(ctx context.Context, to events.Store, stream string, expected events.Revision, batch []events.Event) error {
	for {
		_, err := to.Append(ctx, stream, expected, batch)
		switch {
		case errors.Is(err, events.ErrConflict):
			return fmt.Errorf("the stream %s has other facts in the store that is copied to", stream)
		case !errors.Is(err, events.ErrUnavailable) || ctx.Err() != nil:
			return err
		}
	}
}

// Bounds of one append: EventStoreDB takes 1 MiB.
const (
	runEvents = 100
	runBytes  = events.MaxEventBytes / 2
)

// runs groups events that follow each other in one stream, for an append. A run is valid until the next.
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

// digest is a hash of all events of a stream: of their canonical bytes, in order.
type digest struct {
	events int
	sum    [sha256.Size]byte
}

func (d digest) with(e events.Recorded) (digest, error) {
	b, err := events.Canonical(e)
	if err != nil {
		return digest{}, err
	}
	return digest{d.events + 1, sha256.Sum256(append(d.sum[:], b...))}, nil
}

func digests(ctx context.Context, store events.Store) (map[string]digest, error) {
	all := map[string]digest{}
	for e, err := range allEvents(ctx, store, events.Position{}) {
		if err != nil {
			return nil, err
		}
		if all[e.Stream], err = all[e.Stream].with(e); err != nil {
			return nil, err
		}
	}
	return all, nil
}
