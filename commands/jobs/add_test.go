package jobs

import (
	"testing"

	"github.com/google/uuid"

	"flagledger/migrations/pgtest"
)

// A tenant's pending jobs of every queue lower the priority of its next one, and leave other tenants' alone.
func TestPriorityCountsJobsOfAllQueues(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	o := &office{t: t, pool: pool, client: open(t, pool)}
	busy, idle := uuid.NewString(), uuid.NewString()
	var sandboxes []Job
	for range 5 {
		sandboxes = append(sandboxes, SeedSandbox{EventID: uuid.NewString(), TenantID: busy})
	}
	o.add(sandboxes...)
	for tenant, want := range map[string]int{busy: 2, idle: 1} {
		job := MemberInvitation{EventID: uuid.NewString(), TenantID: tenant}
		o.add(job)
		var priority int
		err := pool.QueryRow(t.Context(), `select priority from jobs.river_job where args ->> 'eventId' = $1`, job.EventID).
			Scan(&priority)
		if err != nil || priority != want {
			t.Errorf("a mail of a tenant has the priority %d (%v), want %d", priority, err, want)
		}
	}
}
