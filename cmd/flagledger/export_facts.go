package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
	"flagledger/events/export"
)

// exportFactsCommand writes facts to a file.
type exportFactsCommand struct {
	Tenant string `type:"id" help:"The id of a tenant: only the facts of its flags, its projects and itself are written."`
	Out    string `required:"" help:"The file. Where an export of it was cut off, that goes on; no other file is overwritten."`
}

// Help explains how to use the command.
func (exportFactsCommand) Help() string {
	return "Servers may run: all that stands when the command starts is written, and perhaps what is added meanwhile. " +
		"The file has a JSON object a line and, in its last line, a SHA-256 of all " +
		"others; import-facts checks it. It holds no names, addresses and passwords of people."
}

// Run writes the file.
func (cmd exportFactsCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(_ settings.Config, databaseURL string, store events.Store, log *slog.Logger) error {
		trail, err := node.OpenTrailReader(ctx, databaseURL)
		if err != nil {
			return err
		}
		defer trail.Close()
		facts, sum, err := exportFacts(ctx, store, cmd.Tenant, trail.Key, cmd.Out, log)
		if err != nil {
			return fmt.Errorf("%s: %w", cmd.Out, err)
		}
		fmt.Printf("%s has %d facts, SHA-256 %s\n", cmd.Out, facts, sum)
		return nil
	})
}

// exportFacts writes all facts of a store or a tenant to the file at path, with a verifier key, and returns their
// number and the file's SHA-256.
func exportFacts(
	ctx context.Context, store events.Store, tenantID, key, path string, log *slog.Logger,
) (facts int, sum string, err error) {
	identity, err := store.Log(ctx)
	if err != nil {
		return 0, "", err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Chmod(0o600); err != nil { // fails for another user's file
		return 0, "", err
	}
	wanted := tenantFilter{tenantID: tenantID, streams: map[string]bool{}}
	var last events.Recorded
	w, err := export.Resume(file, export.NewHeader(identity.ID, tenantID, key), func(e events.Recorded) {
		last = e
		e.Event, e.Err = events.Decode(e.Stored)
		_, _ = wanted.belongs(e)
	})
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, w.Flush()) }()
	after, err := positionOf(ctx, store, last)
	if err != nil {
		return 0, "", err
	}
	show := showProgress("exporting", int64(identity.End.Commit), log)
	for e, err := range allEvents(ctx, store, after) {
		if err != nil {
			return 0, "", err
		}
		ours, err := wanted.belongs(e)
		if err != nil {
			return 0, "", err
		}
		if ours {
			if err := w.Add(e); err != nil {
				return 0, "", err
			}
		}
		show("export", e.Position)
	}
	if w.Facts() == 0 && tenantID != "" {
		// The file has only a header.
		return 0, "", errors.Join(fmt.Errorf("there are no facts of a tenant %s", tenantID), os.Remove(path))
	}
	sum, err = w.End()
	return w.Facts(), sum, errors.Join(err, file.Sync())
}

// positionOf returns the store's position of an exported fact; the zero Position if the store lacks it.
func positionOf(ctx context.Context, store events.Store, exported events.Recorded) (events.Position, error) {
	if exported.Stream == "" {
		return events.Position{}, nil
	}
	for e, err := range store.Read(ctx, exported.Stream, exported.Revision) {
		if err != nil {
			return events.Position{}, err
		}
		if events.RefTo(e) == events.RefTo(exported) {
			return e.Position, nil
		}
		break
	}
	return events.Position{}, fmt.Errorf("its last fact, %s@%d, is not in the store", exported.Stream, exported.Revision)
}
