package jobs

import (
	"context"

	"github.com/riverqueue/river"

	"flagledger/commands/tenants"
)

// PurgeTenant deletes the data of a deleted tenant. The deleting request does so too; the job covers a failure or a
// node that died.
type PurgeTenant struct {
	EventID  string `json:"eventId" river:"unique"`
	TenantID string `json:"tenantId"`
}

const (
	tenantQueue    = "tenants"
	tenantWorkers  = 1  // on each node
	tenantAttempts = 12 // some eleven hours
)

// Kind implements river.JobArgs.
func (PurgeTenant) Kind() string { return "tenant.forgetting" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (PurgeTenant) InsertOpts() river.InsertOpts {
	return oncePerCause(tenantQueue, tenantAttempts)
}

func (PurgeTenant) tenant() string { return "" }

func forgettingWorker(tenancies *tenants.Tenancies) river.Worker[PurgeTenant] {
	return river.WorkFunc(func(ctx context.Context, job *river.Job[PurgeTenant]) error {
		return tenancies.Forget(ctx, job.Args.TenantID)
	})
}
