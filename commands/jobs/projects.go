package jobs

import (
	"context"

	"github.com/riverqueue/river"

	"flagledger/commands/tenants"
	"flagledger/commands/writer"
)

// ProjectRelease removes flags from a project that was deleted while they were created.
type ProjectRelease struct {
	EventID   string `json:"eventId" river:"unique"`
	ProjectID string `json:"projectId"`
	FlagKey   string `json:"flagKey,omitempty"` // empty for all flags of the project
}

const (
	projectQueue    = "projects"
	projectWorkers  = 1  // on each node
	projectAttempts = 12 // some eleven hours
)

// Kind implements river.JobArgs.
func (ProjectRelease) Kind() string { return "project.release" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (ProjectRelease) InsertOpts() river.InsertOpts {
	return oncePerCause(projectQueue, projectAttempts)
}

func (ProjectRelease) tenant() string { return "" }

func releaseWorker(projects *tenants.DeletedProjects) river.Worker[ProjectRelease] {
	return river.WorkFunc(func(ctx context.Context, job *river.Job[ProjectRelease]) error {
		by := writer.ByService()
		by.RequestID = job.Args.EventID
		return ignoreRefusal(projects.ReleaseFlags(ctx, by, job.Args.ProjectID, job.Args.FlagKey))
	})
}
