package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"flagledger/cmd/flagledger/node"
	"flagledger/events"
)

type replayCommand struct {
	Tenant string `required:"" help:"The tenant's id."`
	Flag   string `required:"" help:"The flag's key."`
}

// Run prints the facts of all flags that have had the key.
func (r replayCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(_ node.Config, _ string, store events.Store, _ *slog.Logger) error {
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
