package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
	"flagledger/events/export"
)

// importFactsCommand appends the facts of a file.
type importFactsCommand struct {
	In string `required:"" help:"A file that export-facts wrote."`
	AcceptTimes
}

// Help explains how to use the command.
func (importFactsCommand) Help() string {
	return "Stop the servers first. Nothing is written unless the file is whole and undamaged, and the facts of it that " +
		"the store holds already are the same; nor if a fact cannot be read, is not of the tenant that the file names, is " +
		"recorded in the future, or has the id of another. An import that was cut off goes on " +
		"when it is started again. Facts keep their ids, their times and the time at which they were recorded. No mails " +
		"and other jobs follow from them, except where they are those of the log that jobs " +
		"were made from, as when a service is restored. When servers start, read models follow by themselves."
}

// Run checks the file and appends what is missing.
func (cmd importFactsCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(_ settings.Config, databaseURL string, store events.Store, log *slog.Logger) error {
		added, present, err := importFacts(ctx, cmd.In, store, cmd.AcceptTimes, log, func(logID string) error {
			return node.BeforeImport(ctx, databaseURL, store, logID, log)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", cmd.In, err)
		}
		fmt.Printf("%d facts were added; %d were there already\n", added, present)
		return nil
	})
}

// importFacts appends the missing facts of a file. It calls before with the ID of their log after checking the file
// and the store and before writing. It needs memory for each stream of both, and 8 bytes for each fact.
func importFacts(
	ctx context.Context, path string, store events.Store, accept AcceptTimes, log *slog.Logger,
	before func(logID string) error,
) (added, present int, err error) {
	check, err := newFactCheck(ctx, store, accept)
	if err != nil {
		return 0, 0, err
	}
	held, err := digests(ctx, store, check.noteHeld)
	if err != nil {
		return 0, 0, err
	}
	c, err := checkFile(ctx, path, store, held, check)
	if err != nil {
		return 0, 0, err
	}
	if err := before(c.logID); err != nil {
		return 0, 0, err
	}
	revisions := map[string]events.Revision{}
	for stream, d := range held {
		revisions[stream] = events.Revision(d.events)
	}
	show := showProgress("importing", int64(c.facts), log)
	err = readFacts(path, func(r *export.Reader) error {
		return appendMissing(ctx, r.All(), store, accept, revisions,
			func(events.Recorded) { show("import", events.Position{Commit: uint64(r.Facts())}) })
	})
	if err != nil {
		return 0, 0, err
	}
	if held, err = digests(ctx, store, func(events.Recorded) {}); err != nil {
		return 0, 0, err
	}
	after, err := checkFile(ctx, path, store, held, nil)
	if err == nil && after.missing > 0 {
		err = fmt.Errorf("the store lacks %d of its facts after the import", after.missing)
	}
	return c.missing, c.facts - c.missing, err
}

// checkedFile is a file that is complete, undamaged and consistent with a store.
type checkedFile struct {
	logID          string
	facts, missing int // missing in the store
}

// checkFile reads a file and compares it with the streams of a store. check, unless nil, checks each fact.
func checkFile(
	ctx context.Context, path string, store events.Store, held map[string]digest, check *factCheck,
) (c checkedFile, err error) {
	inFile := map[string]digest{}
	differs := ""
	err = readFacts(path, func(r *export.Reader) error {
		c.logID = r.Header.Log
		if check != nil {
			check.streams = tenantFilter{r.Header.Tenant, map[string]bool{}}
		}
		for e, err := range r.All() {
			if err != nil {
				return err
			}
			d, h := inFile[e.Stream], held[e.Stream]
			if e.Revision != events.Revision(d.events)+1 {
				return fmt.Errorf("line %d: revision %d of %s comes after %d", r.Line(), e.Revision, e.Stream, d.events)
			}
			if check != nil {
				err = check.check(e)
			}
			if err == nil {
				d, err = d.with(e)
			}
			if err != nil {
				return fmt.Errorf("line %d: %w", r.Line(), err)
			}
			inFile[e.Stream] = d
			c.facts++
			if d.events > h.events {
				c.missing++
				if check != nil {
					check.note(e)
				}
			}
			if d.events == h.events && d.sum != h.sum {
				differs = e.Stream
			}
		}
		return nil
	})
	if err != nil {
		return checkedFile{}, err
	}
	for stream, d := range inFile {
		if held[stream].events <= d.events {
			continue
		}
		same, err := beginsWith(ctx, store, stream, d)
		if err != nil {
			return checkedFile{}, err
		}
		if !same {
			differs = stream
		}
	}
	if differs != "" {
		return checkedFile{}, firstDifference(ctx, path, store, differs)
	}
	if check == nil {
		return c, nil
	}
	err = readFacts(path, func(r *export.Reader) error {
		lacking := missing(r.All(), func(stream string) events.Revision { return events.Revision(held[stream].events) })
		return check.checkIDs(both(allEvents(ctx, store, events.Position{}), lacking))
	})
	return c, err
}

// beginsWith reports whether a stream begins with the events of a digest.
func beginsWith(ctx context.Context, store events.Store, stream string, want digest) (bool, error) {
	var d digest
	for e, err := range store.Read(ctx, stream, 0) {
		if err != nil {
			return false, err
		}
		if d, err = d.with(e); err != nil {
			return false, err
		}
		if d.events == want.events {
			break
		}
	}
	return d == want, nil
}

// firstDifference returns an error that names the first fact of a stream that differs between the store and the file.
func firstDifference(ctx context.Context, path string, store events.Store, stream string) error {
	next, stop := iter.Pull2(store.Read(ctx, stream, 0))
	defer stop()
	return readFacts(path, func(r *export.Reader) error {
		for e, err := range r.All() {
			if err != nil {
				return err
			}
			if e.Stream != stream {
				continue
			}
			held, err, _ := next()
			if err != nil {
				return err
			}
			a, errA := events.LeafHash(e)
			b, errB := events.LeafHash(held)
			if err := errors.Join(errA, errB); err != nil {
				return err
			}
			if a != b {
				return fmt.Errorf("line %d: the store holds another fact at %s@%d: %s, recorded %s, with the id %s", r.Line(),
					stream, e.Revision, held.Name, held.At.Format(events.RecordedFormat), held.ID)
			}
		}
		return fmt.Errorf("the stream %s differs from that of the store", stream)
	})
}
