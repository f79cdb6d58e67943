package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"

	"flagledger/cmd/flagledger/node"
	"flagledger/events"
)

// copyCommand copies all events from one event store to another.
type copyCommand struct {
	From string `help:"The event store to read: postgres://... or esdb://..., or private for the private Postgres." required:""`
	To   string `help:"The event store to fill, named likewise." required:""`
}

// Help explains how to use the command.
func (copyCommand) Help() string {
	return "Stop the servers first: what is written meanwhile may be missed. Jobs that are still to be made from the facts are made first; they are done once servers run. " +
		"A copy between two EventStoreDBs uses the database of the settings for that. A copy that was cut off goes on where it was when it is started again. " +
		"At the end both stores are read and compared, stream by stream. Then set FLAGLEDGER_EVENTSTORE_URL and start the servers: read models rebuild by themselves."
}

// Run copies all facts in their order, and compares.
func (cmd copyCommand) Run(ctx context.Context) error {
	c, err := node.Load()
	if err != nil {
		return err
	}
	log := c.Logger()
	from, closeFrom, err := cmd.open(ctx, c, cmd.From, log)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer closeFrom()
	to, closeTo, err := cmd.open(ctx, c, cmd.To, log)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer closeTo()
	if err := cmd.catchUp(ctx, c, from, log); err != nil {
		return fmt.Errorf("jobs from the facts that are copied: %w", err)
	}
	if err := copyEvents(ctx, from, to, log); err != nil {
		return err
	}
	return compareStores(ctx, from, to, log)
}

// catchUp has jobs made from the last facts of the store that is left: in the other one, jobs are made from its end on. They stand in the database of the
// servers, which is the one that is named if one is, and wait there for the next start.
func (cmd copyCommand) catchUp(ctx context.Context, c node.Config, from events.Store, log *slog.Logger) error {
	for _, url := range []string{cmd.To, cmd.From} {
		switch {
		case strings.HasPrefix(url, "postgres"):
			c.DatabaseURL = url
		case url == "private":
			c.DatabaseURL = ""
		}
	}
	database, stop, err := node.JoinDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer stop()
	return node.CatchUp(ctx, database, from, log)
}

func (copyCommand) open(ctx context.Context, c node.Config, url string, log *slog.Logger) (events.Store, func(), error) {
	c.EventStoreURL, c.DatabaseURL = "", ""
	switch {
	case strings.HasPrefix(url, "esdb"):
		c.EventStoreURL = url
		if err := node.CheckURL("the URL", url, "esdb", "esdb+discover"); err != nil {
			return nil, nil, err
		}
		return node.OpenStore(ctx, c, "", log)
	case url != "private":
		c.DatabaseURL = url
		if err := node.CheckURL("the URL", url, "postgres", "postgresql"); err != nil {
			return nil, nil, err
		}
	}
	database, stop, err := node.JoinDatabase(ctx, c, log)
	if err != nil {
		return nil, nil, err
	}
	store, closeStore, err := node.OpenStore(ctx, c, database, log)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return store, func() {
		closeStore()
		stop()
	}, nil
}

// copyEvents appends the events of one store that another one lacks, in order.
func copyEvents(ctx context.Context, from, to events.Store, log *slog.Logger) error {
	held := map[string]events.Revision{}
	for e, err := range allEvents(ctx, to, events.Position{}) {
		if err != nil {
			return err
		}
		held[e.Stream] = e.Revision
	}
	head, err := from.Head(ctx)
	if err != nil {
		return err
	}
	show := showProgress("copying", int64(head.Commit), log)
	return appendMissing(ctx, allEvents(ctx, from, events.Position{}), to, held, func(e events.Recorded) { show("copy", e.Position) })
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

// compareStores reads both stores and names the first stream that differs.
func compareStores(ctx context.Context, from, to events.Store, log *slog.Logger) error {
	want, err := digests(ctx, from)
	if err != nil {
		return err
	}
	got, err := digests(ctx, to)
	if err != nil {
		return err
	}
	total := 0
	for stream, d := range want {
		if got[stream] != d {
			return fmt.Errorf("the stream %s differs: %d events in one store and %d in the other", stream, d.events, got[stream].events)
		}
		total += d.events
	}
	for stream := range got {
		if _, ok := want[stream]; !ok {
			return fmt.Errorf("the stream %s stands only in the store that was copied to", stream)
		}
	}
	log.Info("both stores hold the same facts", "streams", len(want), "events", total)
	return nil
}
