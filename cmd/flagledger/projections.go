package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/terminal"
	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
)

type listProjectionsCommand struct{}

// Run lists the read models.
func (listProjectionsCommand) Run() error {
	for _, p := range models.All() {
		fmt.Println(p.Name)
	}
	return nil
}

type projectionStatusCommand struct{}

// Run prints a line for each read model and for each parked stream.
func (projectionStatusCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(_ settings.Config, url string, store events.Store, _ *slog.Logger) error {
		pool, err := node.OpenPool(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		statuses, err := projections.Statuses(ctx, pool, models.All(), store)
		if err != nil {
			return err
		}
		table := terminal.NewTable(os.Stdout)
		table.Row("NAME", "VERSION", "POSITION", "LAG", "BEHIND", "PARKED")
		for _, s := range statuses {
			position := s.Position.String()
			if !s.Built {
				position = "not built"
			}
			table.Row(s.Name, fmt.Sprint(s.Version), position, fmt.Sprint(s.Lag), s.Behind.Round(time.Millisecond).String(),
				fmt.Sprint(len(s.Parked)))
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

// projectionSelection selects the read models of a command.
type projectionSelection struct {
	Names []string `arg:"" optional:"" name:"name" help:"The read models."`
	All   bool     `help:"All of them."`
	Rate  int      `help:"The most events to read a second; unlimited by default."`

	FullSpeed bool `help:"Do not yield to servers that read or write."`
}

// projections returns the selected read models.
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
	Force  bool `help:"Replace read models even if they differ from the rebuilt ones."`
	Afresh bool `help:"Begin at the first event, even if an interrupted rebuild could continue."`
}

// Run rebuilds read models and shows the progress.
func (r rebuildProjectionsCommand) Run(ctx context.Context) error {
	return r.rebuild(ctx, "rebuild", "rebuilt", projections.RebuildOptions{Force: r.Force, Afresh: r.Afresh})
}

type verifyProjectionsCommand struct{ projectionSelection }

// Run compares read models with rebuilt ones.
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
	return withStore(ctx, func(_ settings.Config, url string, store events.Store, log *slog.Logger) error {
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
