package jobs

import (
	"context"
	"testing"
	"time"

	"flagledger/commands"
	"flagledger/events"
	"flagledger/migrations/pgtest"
)

// While a job cleans up a sandbox, on whichever node, nobody else does: what is done after their cleanup would be undone by the rest of the job's.
func TestACleanupWaitsForTheJobUnderWay(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s, by := NewSandboxes(open(t, pool)), commands.By{Actor: events.Actor{Kind: events.UserActor, ID: "u"}, RequestID: "r"}
	set := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	set(`insert into jobs.river_job (kind, args, queue, max_attempts, state, attempt, attempted_at)
		values ('sandbox.cleanup', '{"tenantId":"t","userId":"u","requestId":"r"}', 'sandboxes', 8, 'running', 1, now())`)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Cleanup(short, by, "t"); commands.KindOf(err) != commands.Unavailable {
		t.Errorf("while a job is under way: %v", err)
	}
	if _, err := s.Cleanup(t.Context(), by, "another"); err != nil {
		t.Errorf("another sandbox: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Cleanup(t.Context(), by, "t")
		ended <- err
	}()
	set(`update jobs.river_job set state = 'completed', finalized_at = now() where state = 'running'`)
	if err := <-ended; err != nil {
		t.Errorf("once it has ended: %v", err)
	}
	var waiting int
	if err := pool.QueryRow(t.Context(), `select count(*) from jobs.river_job where args ->> 'tenantId' = 't' and state = 'scheduled'`).Scan(&waiting); err != nil || waiting != 1 {
		t.Errorf("%d cleanups are noted: %v", waiting, err)
	}
}
