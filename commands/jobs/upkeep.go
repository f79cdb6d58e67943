package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"
)

// Task is periodic work that one node does for all.
type Task struct {
	Name  string // permanent: it is stored in jobs
	Every time.Duration
	Do    func(context.Context) error
}

// upkeep is the job of one run of a task.
type upkeep struct {
	Task string `json:"task"`
}

// Kind implements river.JobArgs.
func (upkeep) Kind() string { return "upkeep" }

// upkeepAttempts are few: the next run covers a failed one.
const upkeepAttempts = 3

// periodic returns the tasks for River's leader, which inserts them all when it starts. A task that ran within its
// interval does not run again.
func (w Work) periodic() []*river.PeriodicJob {
	var list []*river.PeriodicJob
	for _, task := range w.Upkeep {
		insert := func() (river.JobArgs, *river.InsertOpts) {
			return upkeep{task.Name}, &river.InsertOpts{
				Queue: upkeepQueue, MaxAttempts: upkeepAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: task.Every},
			}
		}
		list = append(list,
			river.NewPeriodicJob(river.PeriodicInterval(task.Every), insert, &river.PeriodicJobOpts{RunOnStart: true}))
	}
	return list
}

// upkeepWorker carries out the tasks.
type upkeepWorker struct {
	river.WorkerDefaults[upkeep]
	tasks []Task
}

// Work implements river.Worker.
func (w *upkeepWorker) Work(ctx context.Context, job *river.Job[upkeep]) error {
	for _, task := range w.tasks {
		if task.Name == job.Args.Task {
			return task.Do(ctx)
		}
	}
	return river.JobCancel(fmt.Errorf("there is no task %q: the job is of another version", job.Args.Task))
}

// Timeout implements river.Worker: a task goes through all tenants' data.
func (*upkeepWorker) Timeout(*river.Job[upkeep]) time.Duration { return upkeepTimeout }
