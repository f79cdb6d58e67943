package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"flagledger/events"
	"flagledger/http"
)

// build is the number of the build, set by the linker.
var build = "dev"

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run() error {
	_, err := fmt.Printf("flagledger %s (%s)\n", http.Version, build)
	return err
}

type migrateCommand struct{}

// Run brings the database to the newest schema.
func (migrateCommand) Run(ctx context.Context) error {
	c, err := loadConfig()
	if err != nil {
		return err
	}
	log := c.logger()
	url, stop, err := joinDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer stop()
	return prepare(ctx, url, log)
}

// withStore opens the event store, beside a running server or alone, for as long as use runs.
func withStore(ctx context.Context, use func(c config, databaseURL string, store events.Store, log *slog.Logger) error) error {
	c, err := loadConfig()
	if err != nil {
		return err
	}
	log := c.logger()
	url, stop, err := joinDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer stop()
	store, closeStore, err := openStore(ctx, c, url, log)
	if err != nil {
		return err
	}
	defer closeStore()
	return use(c, url, store, log)
}

type replayCommand struct {
	Tenant string `required:"" help:"The tenant's id."`
	Flag   string `required:"" help:"The flag's key."`
}

// Run prints the facts of all the lives of a flag.
func (r replayCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(_ config, _ string, store events.Store, _ *slog.Logger) error {
		out := json.NewEncoder(os.Stdout)
		out.SetEscapeHTML(false)
		found := false
		for e, err := range store.Read(ctx, events.FlagStream(r.Tenant, r.Flag), 0) {
			if err == nil {
				err = e.Err
			}
			if err != nil {
				return err
			}
			found = true
			err = out.Encode(struct {
				Version  events.Revision `json:"version"`
				Fact     string          `json:"fact"`
				ID       string          `json:"id"`
				Data     events.Fact     `json:"data"`
				Metadata events.Metadata `json:"metadata"`
			}{e.Revision, e.Name, e.ID.String(), e.Fact, e.Metadata})
			if err != nil {
				return err
			}
		}
		if !found {
			return fmt.Errorf("the tenant %s never had a flag %s", r.Tenant, r.Flag)
		}
		return nil
	})
}
