package systemtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events/postgres"
	"flagledger/projections"
	"flagledger/projections/models"
)

func TestAnOutageOfPostgres(t *testing.T) {
	t.Parallel()
	dir, p := nodetest.OwnPostgres(t)
	s := nodetest.On(t, p.URL())
	c := s.SignUp("me@example.com")
	c.CreateFlag("on", nil)
	c.Call("POST", nodetest.FlagPath("on", "/enable"), nil).Want(200)
	c.CreateFlag("split",
		map[string]any{"type": "string", "flag_variations": []map[string]any{{"name": "a", "value": "A", "weight": 1}}})
	c.Call("POST", nodetest.FlagPath("split", "/enable"), nil).Want(200)
	stop := keepEvaluating(t, c, map[string]string{"on": `"value":true`, "split": `"value":"A"`})
	defer stop()

	end := nodetest.Outage(t, dir)
	defer end()
	s.Eventually("lists fail", func() bool { return c.Attempt("GET", "/api/v1/flags", "").Status == 503 })
	allUnavailable(t, c)
	s.Eventually("health tells of it",
		func() bool { return strings.Contains(c.Attempt("GET", "/health", "").Body, `"status":"degraded"`) })

	began := time.Now()
	end()
	s.Eventually("writes succeed", func() bool {
		return c.Attempt("POST", "/api/v1/flags", `{"key":"back","type":"boolean"}`).Status == 201 ||
			c.Attempt("GET", nodetest.FlagPath("back"), "").Status == 200
	})
	s.Eventually("lists succeed", func() bool { return c.Attempt("GET", "/api/v1/flags", "").Status == 200 })
	t.Logf("back %v after the outage ended", time.Since(began).Round(time.Millisecond))
	s.Eventually("health is good",
		func() bool { return strings.Contains(c.Attempt("GET", "/health", "").Body, `"status":"ok"`) })
	s.Eventually("what is new is evaluated",
		func() bool { return c.Attempt("POST", nodetest.FlagPath("back", "/evaluate"), `{}`).Status == 200 })
	c.CreateFlag("after", nil)
	c.Call("GET", nodetest.FlagPath("after"), nil).Want(200)
	stop()
	c.Call("POST", nodetest.FlagPath("on", "/evaluate"), `{"targetingKey":"u1"}`).Want(200)
}

// allUnavailable makes all kinds of calls that need Postgres, four times each. They must return 503 with Retry-After.
func allUnavailable(t *testing.T, c *nodetest.Client) {
	t.Helper()
	call := func(method, path, body string) func(int) nodetest.Reply {
		return func(int) nodetest.Reply { return c.Attempt(method, path, body) }
	}
	numbered := func(method, path, format string) func(int) nodetest.Reply {
		return func(i int) nodetest.Reply { return c.Attempt(method, path, fmt.Sprintf(format, i)) }
	}
	calls := map[string][]func(i int) nodetest.Reply{
		"writes": {
			numbered("POST", "/api/v1/flags", `{"key":"lost-%d","type":"boolean"}`),
			numbered("PATCH", nodetest.FlagPath("on"), `{"description":"%d"}`),
			call("POST", nodetest.FlagPath("on", "/disable"), ""),
			call("DELETE", nodetest.FlagPath("split"), ""),
			numbered("POST", "/api/v1/projects", `{"name":"%d"}`),
		},
		"reads": {
			call("GET", "/api/v1/flags", ""),
			call("GET", nodetest.FlagPath("on"), ""),
			call("GET", nodetest.FlagPath("on", "/history"), ""),
			call("GET", "/api/v1/projects", ""),
			call("GET", "/api/v1/tenants", ""),
		},
		"sign-ins": {
			call("POST", "/auth/signin", fmt.Sprintf(`{"email":"me@example.com","password":%q}`, nodetest.Password)),
		},
	}
	took := map[string]*nodetest.Samples{}
	var calling sync.WaitGroup
	for kind, list := range calls {
		l := &nodetest.Samples{}
		took[kind] = l
		for _, call := range list {
			calling.Go(func() {
				for i := range 4 {
					r := call(i)
					l.Add(r.Took)
					if r.Status != 503 || r.Header.Get("Retry-After") == "" {
						t.Errorf("one of the %s: %v", kind, r)
					}
				}
			})
		}
	}
	calling.Wait()
	for kind, l := range took {
		t.Logf("%s: %v", kind, l)
	}
}

// recordCommits makes the database record each commit of a read model in the same transaction.
func recordCommits(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), `
		create table commits (id uuid primary key);
		create function record_commit() returns trigger language plpgsql as $$ begin insert into public.commits values (gen_random_uuid()); return null; end $$;
		create trigger record_commit after insert or update on read.checkpoints for each row execute function record_commit()`); err != nil {
		t.Fatal(err)
	}
}

// recordedCommits returns the commits of read models that were not lost.
func recordedCommits(t testing.TB, conn *pgx.Conn) []string {
	t.Helper()
	return column[string](t, conn, `select id::text from commits`)
}

// What was shown stays shown after a crash, even without later writes.
func TestACrashOfPostgresHidesNothing(t *testing.T) {
	t.Parallel()
	crashes := killCount(3)
	dir, p := nodetest.OwnPostgres(t)
	s := nodetest.On(t, p.URL())
	c := s.SignUp("me@example.com")
	for i := range crashes {
		key := fmt.Sprintf("shown-%d", i)
		c.CreateFlag(key, nil)
		before := nodetest.Postmaster(dir)
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		s.Eventually("Postgres is started again", func() bool { pid := p.PID(); return pid != 0 && pid != before })
		began := time.Now()
		s.Eventually("the flag is shown again", func() bool {
			r := c.Attempt("GET", "/api/v1/flags", "")
			return r.Status == 200 && strings.Contains(r.Body, `"`+key+`"`)
		})
		t.Logf("the last flag is shown %v after Postgres is back", time.Since(began).Round(time.Millisecond))
	}
}

// Commits of read models do not wait for the disk: a crash may lose the last ones, and the projectors resume at the
// remaining checkpoints. The test kills Postgres until a commit was lost.
func TestKillingPostgresUnderLoad(t *testing.T) {
	t.Parallel()
	kills := killCount(4)
	// commits of read models reach the disk only with commits of facts
	dir, p := nodetest.OwnPostgres(t, "wal_writer_delay=10s")
	s := nodetest.On(t, p.URL())
	c := s.SignUp("me@example.com")
	l := startLoad(c, 6)
	l.more(20)
	recordCommits(t, connect(t, p.URL()))
	var back nodetest.Samples
	// kill reports whether commits of read models were lost. Usually the last ones are, if no later fact brings them to
	// the disk.
	started := time.Now()
	kill := func(afterWrites bool) (undone bool) {
		s.Eventually("Postgres is old enough for the next one to be started at once",
			func() bool { return time.Since(started) > 1100*time.Millisecond })
		postmaster, conn := p.PID(), connect(t, p.URL())
		release := func() {}
		if afterWrites {
			release = l.hold()
			defer release()
		}
		processes := column[int](t, conn, `select pid from pg_stat_activity`)
		before := recordedCommits(t, conn)
		began := time.Now()
		for _, pid := range append([]int{postmaster}, processes...) { // otherwise the others would run on for a moment
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
		}
		s.Eventually("Postgres is started again", func() bool { pid := p.PID(); return pid != 0 && pid != postmaster })
		started = time.Now()
		after := recordedCommits(t, connect(t, p.URL()))
		release()
		l.more(20)
		back.Add(time.Since(began))
		return slices.ContainsFunc(before, func(id string) bool { return !slices.Contains(after, id) })
	}
	killed, undone := 0, 0
	for ; killed < kills || undone == 0 && killed < kills+20; killed++ {
		if kill(killed%2 == 1) {
			undone++
		}
	}
	t.Logf("writes go on after kills: %v; commits of read models were taken back by %d of them", &back, undone)
	if undone == 0 {
		t.Errorf("no commit of a read model was taken back by %d kills", killed)
	}

	// This exceeds the timeout of writes.
	began, given, end := time.Now(), l.unknown.Load(), nodetest.Outage(t, dir)
	s.Eventually("writes fail", func() bool { return l.unknown.Load() > given+6 })
	end()
	l.more(20)
	t.Logf("writes go on %v after the beginning of an outage", time.Since(began).Round(time.Millisecond))
	l.stop()
	settled(s)
	l.audit()

	// The snapshot has missed nothing either.
	for _, flag := range c.Call("GET", "/api/v1/flags", nil).Want(200).List() {
		key := flag["key"].(string)
		if served := c.Call("POST", nodetest.FlagPath(key, "/evaluate"), `{}`).
			Want(200).
			Object(); served["flagVersion"] != flag["version"] {
			t.Errorf("%s is evaluated at version %v and listed at %v", key, served["flagVersion"], flag["version"])
		}
	}

	before := readModels(t, p.URL())
	store, err := postgres.Open(t.Context(), p.URL(), nodetest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := projections.Rebuild(
		t.Context(), p.URL(), store, models.All(), projections.RebuildOptions{}, nodetest.Log(t),
	); err != nil {
		t.Fatal(err)
	}
	sameReadModels(t, before, readModels(t, p.URL()))
}
