package main

import (
	"context"
	"fmt"
	"log/slog"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/events"
)

type planCommand struct {
	Tenant string `required:"" type:"id" help:"The tenant's id."`
	Plan   string `arg:"" help:"The plan."`
}

// Run gives a tenant a plan without payment. Running servers apply it at once.
func (p planCommand) Run(ctx context.Context) error {
	return withStore(ctx, func(c settings.Config, _ string, store events.Store, _ *slog.Logger) error {
		if err := node.SetPlan(ctx, c, store, p.Tenant, events.Plan(p.Plan)); err != nil {
			return err
		}
		fmt.Printf("The tenant %s has the plan %s.\n", p.Tenant, p.Plan)
		return nil
	})
}
