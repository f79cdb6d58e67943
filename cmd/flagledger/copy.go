package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
)

// copyCommand copies all events from one event store to another.
type copyCommand struct {
	From string `help:"The event store to read: postgres://... or esdb://..., or private for the private Postgres." required:""`
	To   string `help:"The event store to fill, in the same form." required:""`
	AcceptTimes
}

// Help explains how to use the command.
func (copyCommand) Help() string {
	return "Stop the servers first: what is written meanwhile would be missed, so nothing is copied while one runs. " +
		"Jobs that are still to be made from the facts are made first; they are done once servers run. " +
		"A copy between two EventStoreDBs uses the database of the settings for that. A copy that was cut off goes on " +
		"where it was when it is started again. Nothing is copied if a fact cannot be read, is recorded in the future, " +
		"or has the id of another. " +
		"At the end both stores are read and compared, stream by stream. Then set FLAGLEDGER_EVENTSTORE_URL and start the " +
		"servers: read models rebuild by themselves."
}

// Run copies all facts in their order, and compares.
func (cmd copyCommand) Run(ctx context.Context) error {
	if cmd.From == cmd.To {
		return errors.New("--from and --to name the same event store")
	}
	c, err := settings.Load()
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
	if err := copyEvents(ctx, from, to, cmd.AcceptTimes, log); err != nil {
		return err
	}
	return compareStores(ctx, from, to, log)
}

// catchUp creates the jobs for the last facts of the old store, because in the new one jobs begin at its end. They are
// in the servers' database, which is one of the named ones if there is one, and wait for the next start.
func (cmd copyCommand) catchUp(ctx context.Context, c settings.Config, from events.Store, log *slog.Logger) error {
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

func (copyCommand) open(
	ctx context.Context, c settings.Config, url string, log *slog.Logger,
) (events.Store, func(), error) {
	c.EventStoreURL, c.DatabaseURL = "", ""
	switch {
	case strings.HasPrefix(url, "esdb"):
		c.EventStoreURL = url
		if err := settings.CheckURL("the URL", url, "esdb", "esdb+discover"); err != nil {
			return nil, nil, err
		}
		return node.OpenStore(ctx, c, "", log)
	case url != "private":
		c.DatabaseURL = url
		if err := settings.CheckURL("the URL", url, "postgres", "postgresql"); err != nil {
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

// copyEvents checks the missing events of a store and appends them in order.
func copyEvents(ctx context.Context, from, to events.Store, accept AcceptTimes, log *slog.Logger) error {
	check, err := newFactCheck(ctx, to, accept)
	if err != nil {
		return err
	}
	held := map[string]events.Revision{}
	for e, err := range allEvents(ctx, to, events.Position{}) {
		if err != nil {
			return err
		}
		held[e.Stream] = e.Revision
		check.noteHeld(e)
	}
	lacking := missing(allEvents(ctx, from, events.Position{}),
		func(stream string) events.Revision { return held[stream] })
	for e, err := range lacking {
		if err == nil {
			err = check.check(e)
		}
		if err != nil {
			return err
		}
		check.note(e)
	}
	if err := check.checkIDs(both(allEvents(ctx, to, events.Position{}), lacking)); err != nil {
		return err
	}
	head, err := from.Head(ctx)
	if err != nil {
		return err
	}
	show := showProgress("copying", int64(head.Commit), log)
	return appendMissing(ctx, allEvents(ctx, from, events.Position{}), to, accept, held,
		func(e events.Recorded) { show("copy", e.Position) })
}

// compareStores reads both stores and names the first stream that differs.
func compareStores(ctx context.Context, from, to events.Store, log *slog.Logger) error {
	want, err := digests(ctx, from, func(events.Recorded) {})
	if err != nil {
		return err
	}
	got, err := digests(ctx, to, func(events.Recorded) {})
	if err != nil {
		return err
	}
	total := 0
	for stream, d := range want {
		if got[stream] != d {
			return fmt.Errorf("the stream %s differs: %d events in one store and %d in the other", stream, d.events,
				got[stream].events)
		}
		total += d.events
	}
	for stream := range got {
		if _, ok := want[stream]; !ok {
			return fmt.Errorf("the stream %s is only in the target store", stream)
		}
	}
	log.Info("both stores hold the same facts", "streams", len(want), "events", total)
	return nil
}
