package node

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"flagledger/cmd/flagledger/node/settings"
	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
)

// SetPlan gives a tenant a plan as the operator. It does nothing if the tenant has the plan.
func SetPlan(ctx context.Context, c settings.Config, store events.Store, tenantID string, plan events.Plan) error {
	w := writer.NewWriter(store, writer.NoWait, writer.NoQuotas{}, c.Now)
	by := writer.BySystem("operator")
	by.RequestID = uuid.NewString()
	_, _, err := writer.Do(ctx, w, by, commands.SetPlan{TenantRef: commands.TenantRef{TenantID: tenantID}, Plan: plan})
	if refusal, ok := errors.AsType[*commands.Error](err); ok && refusal.Fields["plan"] != "" {
		return errors.New(refusal.Fields["plan"])
	}
	return err
}
