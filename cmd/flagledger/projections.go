package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
)

type listProjectionsCommand struct{}

// Run names the read models.
func (listProjectionsCommand) Run() error {
	for _, p := range models.All() {
		fmt.Println(p.Name)
	}
	return nil
}

type projectionStatusCommand struct{}

// Run prints a line for each read model and for each stream that one has parked.
func (projectionStatusCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(_ node.Config, url string, store events.Store, _ *slog.Logger) error {
		pool, err := node.OpenPool(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		statuses, err := projections.Statuses(ctx, pool, models.All(), store)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NAME\tVERSION\tPOSITION\tLAG\tBEHIND\tPARKED")
		for _, s := range statuses {
			position := s.Position.String()
			if !s.Built {
				position = "not built"
			}
			fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%d\n", s.Name, s.Version, position, s.Lag, s.Behind.Round(time.Millisecond),
				len(s.Parked))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, s := range statuses {
			for _, p := range s.Parked {
				fmt.Printf("%s has parked %s at version %d since %s: %s\n", s.Name, terminal.Printable(p.Stream), p.Revision,
					p.At.UTC().Format(time.RFC3339), terminal.Printable(p.Error))
			}
		}
		return nil
	})
}

// projectionSelection is which read models a command is about.
type projectionSelection struct {
	Names []string `arg:"" optional:"" name:"name" help:"The read models."`
	All   bool     `help:"All of them."`
	Rate  int      `help:"How many events a second are read at most; as many as can be without it."`

	FullSpeed bool `help:"Use all processors also while servers read or change something."`
}

// projections finds the read models that are chosen.
func (c projectionSelection) projections() ([]projections.Projection, error) {
	if c.All == (len(c.Names) > 0) {
		return nil, errors.New("name the read models, or --all")
	}
	if c.Rate < 0 {
		return nil, errors.New("--rate must not be negative")
	}
	if c.All {
		return models.All(), nil
	}
	return models.ByName(c.Names)
}

type rebuildProjectionsCommand struct {
	projectionSelection
	Force  bool `help:"Replace also what differs from what the facts make."`
	Afresh bool `help:"Begin at the first event, also where a rebuild that was ended has left something."`
}

// Run rebuilds read models and shows how far it is.
func (r rebuildProjectionsCommand) Run(ctx context.Context) error {
	return r.rebuild(ctx, "rebuild", "rebuilt", projections.RebuildOptions{Force: r.Force, Afresh: r.Afresh})
}

type verifyProjectionsCommand struct{ projectionSelection }

// Run compares read models with what the facts make.
func (v verifyProjectionsCommand) Run(ctx context.Context) error {
	return v.rebuild(ctx, "verify", "verified", projections.RebuildOptions{CompareOnly: true})
}

func (c projectionSelection) rebuild(
	ctx context.Context, command, done string, options projections.RebuildOptions,
) error {
	list, err := c.projections()
	if err != nil {
		return fmt.Errorf("projections %s: %w", command, err)
	}
	setGCPercent(rebuildGCPercent)
	return withStore(ctx, func(_ node.Config, url string, store events.Store, log *slog.Logger) error {
		head, err := store.Head(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		options.Rate, options.FullSpeed, options.Report = c.Rate, c.FullSpeed, showReaders(command, len(list),
			int64(head.Commit), log)
		err = projections.Rebuild(ctx, url, store, list, options, log)
		if _, different := errors.AsType[*projections.DifferentError](err); different && !options.CompareOnly {
			return fmt.Errorf("%w; these were not replaced, which --force does", err)
		}
		if err != nil && ctx.Err() != nil && !options.CompareOnly {
			return errors.New("interrupted; a rebuild of the same read models goes on from here, or anew with --afresh")
		}
		if err != nil {
			return err
		}
		for _, p := range list {
			log.Info(done, "projection", p.Name, "took", time.Since(began).Round(time.Millisecond))
		}
		return nil
	})
}
