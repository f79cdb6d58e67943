package jobs

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/commands"
	"flagledger/commands/writer"
	"flagledger/events"
	"flagledger/migrations/pgtest"
)

// While a job cleans up a sandbox, no other cleanup of it runs on any node: the rest of the job would undo it.
func TestACleanupWaitsForTheJobUnderWay(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s, by := NewSandboxes(open(t, pool)), writer.By{Actor: events.Actor{Kind: events.UserActor, ID: "u"}, RequestID: "r"}
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
	if _, err := s.NoteCleanup(short, by, "t", time.Now()); commands.KindOf(err) != commands.Unavailable {
		t.Errorf("while a job is under way: %v", err)
	}
	if _, err := s.NoteCleanup(t.Context(), by, "another", time.Now()); err != nil {
		t.Errorf("another sandbox: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.NoteCleanup(t.Context(), by, "t", time.Now())
		ended <- err
	}()
	set(`update jobs.river_job set state = 'completed', finalized_at = now() where state = 'running'`)
	if err := <-ended; err != nil {
		t.Errorf("once it has ended: %v", err)
	}
	var waiting int
	if err := pool.QueryRow(t.Context(), `select count(*) from jobs.river_job where args ->> 'tenantId' = 't' and state = 'scheduled'`).
		Scan(&waiting); err != nil ||
		waiting != 1 {
		t.Errorf("%d cleanups are noted: %v", waiting, err)
	}
}

// Each of two concurrent cleanups cancels only its own job: the later one does what the earlier would.
func TestCleanupsAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := NewSandboxes(open(t, pool))
	noted := func() (users []string) {
		t.Helper()
		rows, err := pool.Query(t.Context(),
			`select args ->> 'userId' from jobs.river_job where kind = 'sandbox.cleanup' order by id`)
		if err == nil {
			users, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatal(err)
		}
		return users
	}
	note := func(user string) (drop func(context.Context) error) {
		t.Helper()
		drop, err := s.NoteCleanup(t.Context(), writer.By{Actor: events.Actor{Kind: events.UserActor, ID: user}}, "t",
			time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return drop
	}
	first, second := note("first"), note("second")
	for _, step := range []struct {
		drop func(context.Context) error
		want []string
	}{{first, []string{"second"}}, {second, nil}} {
		if err := step.drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if users := noted(); !slices.Equal(users, step.want) {
			t.Errorf("the cleanups of %v are noted, want %v", users, step.want)
		}
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { note(strconv.Itoa(i)) })
	}
	all.Wait()
	if users := noted(); len(users) != 1 {
		t.Errorf("the cleanups of %v are noted", users)
	}
}
