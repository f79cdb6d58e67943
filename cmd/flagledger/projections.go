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
	"flagledger/events"
	"flagledger/projections"
	"flagledger/projections/models"
)

type listCommand struct{}

// Run names the read models.
func (listCommand) Run() error {
	for _, p := range models.All() {
		fmt.Println(p.Name)
	}
	return nil
}

type statusCommand struct{}

// Run prints a line for each read model and for each stream that one has parked.
func (statusCommand) Run(ctx context.Context) error {
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
			fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%d\n", s.Name, s.Version, position, s.Lag, s.Behind.Round(time.Millisecond), len(s.Parked))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, s := range statuses {
			for _, p := range s.Parked {
				fmt.Printf("%s has parked %s at version %d since %s: %s\n", s.Name, p.Stream, p.Revision, p.At.UTC().Format(time.RFC3339), p.Error)
			}
		}
		return nil
	})
}

type rebuildCommand struct {
	Names []string `arg:"" optional:"" name:"name" help:"The read models to rebuild."`
	All   bool     `help:"Rebuild all of them."`
}

// Run rebuilds read models and shows how far it is.
func (r rebuildCommand) Run(ctx context.Context) error {
	if r.All == (len(r.Names) > 0) {
		return errors.New("projections rebuild: name the read models, or --all")
	}
	list := models.All()
	if !r.All {
		var err error
		if list, err = models.ByName(r.Names); err != nil {
			return err
		}
	}
	return withStore(ctx, func(_ node.Config, url string, store events.Store, log *slog.Logger) error {
		head, err := store.Head(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		show := showProgress("rebuilding", int64(head.Commit)*int64(len(list)), log)
		if err := projections.Rebuild(ctx, url, store, list, show, log); err != nil {
			return err
		}
		for _, p := range list {
			log.Info("rebuilt", "projection", p.Name, "took", time.Since(began).Round(time.Millisecond))
		}
		return nil
	})
}
