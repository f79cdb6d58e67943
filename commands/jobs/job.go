package jobs

import (
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Job describes work. Its fields are stored and shown to operators, so they hold only ids. Addresses are looked up
// when the job runs, because they may have changed or been erased.
type Job interface {
	river.JobArgs
	// tenant returns the tenant that caused the job, or "" if none did. Jobs of a tenant with many pending ones get a
	// lower priority.
	tenant() string
}

// oncePerCause makes a job unique per cause, which is in its unique fields. River waits attempt^4 seconds after each
// attempt.
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
