package jobs

import (
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Job is what is to be done. Its fields are stored and shown to operators, so they hold ids alone. Addresses are looked
// up when the job is done: they may have been changed or erased since.
type Job interface {
	river.JobArgs
	// tenant returns the tenant that caused the job, or "" if none did. Jobs of a tenant with many pending ones get a
	// lower priority.
	tenant() string
}

// oncePerCause makes jobs for one cause one job. Fields that are marked as unique tell the cause. River waits for
// attempt^4 seconds after each attempt.
func oncePerCause(queue string, attempts int) river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: attempts, UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

// unfinished are the states of a job that has not ended.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable,
	rivertype.JobStatePending,
	rivertype.JobStateRetryable,
	rivertype.JobStateRunning,
	rivertype.JobStateScheduled,
}
