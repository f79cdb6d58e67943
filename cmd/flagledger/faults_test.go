package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/events/postgres"
	"flagledger/migrations/embedded"
	"flagledger/projections"
	"flagledger/projections/models"
)

// dataFolder is a data folder for a private Postgres, which may have to run as another user.
func dataFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "flagledger-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// ownPostgres starts a Postgres that nobody else's tests use, so that it may be killed.
func ownPostgres(t testing.TB) (dir string, p *embedded.Postgres) {
	t.Helper()
	dir = dataFolder(t)
	p, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return dir, p
}

// postmaster is the process that runs Postgres on a data folder, or that is about to; 0 where there is none.
func postmaster(dir string) int {
	file, err := os.ReadFile(filepath.Join(dir, "postgres", "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(file), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	// The file outlives a process that is killed.
	command, err := exec.Command("ps", "-o", "command=", "-p", line).Output()
	if err != nil || !strings.Contains(string(command), "postgres -D "+dir) {
		return 0
	}
	return pid
}

// outage keeps Postgres down until end is called: each one that is started is killed before it is ready.
func outage(t testing.TB, dir string) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var killing sync.WaitGroup
	killing.Go(func() {
		for ctx.Err() == nil {
			if pid := postmaster(dir); pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			select {
			case <-time.After(2 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		killing.Wait()
	}
}

// reply is what came of a call that is allowed to fail.
type reply struct {
	status int // 0 where no answer came
	header http.Header
	body   string
	took   time.Duration
	err    error
}

func (r reply) String() string {
	return fmt.Sprintf("%d after %v: %s%v", r.status, r.took, r.body, r.err)
}

// callers keep their connections: a test that calls without pause would run out of ports otherwise.
var callers = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// attempt makes a call whatever may come of it, from any goroutine.
func (c *client) attempt(method, path, body string) (r reply) {
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	request, err := http.NewRequest(method, c.s.url+path, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("X-Tenant-ID", c.tenant)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := callers.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{err: err}
	}
	return reply{status: response.StatusCode, header: response.Header, body: string(bytes.TrimSpace(text))}
}

// latencies collects how long calls took, from several goroutines.
type latencies struct {
	mu   sync.Mutex
	list []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, d)
}

func (l *latencies) worst() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Max(append(l.list, 0))
}

func (l *latencies) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.list)
	at := func(percent int) time.Duration {
		return l.list[min(len(l.list)*percent/100, len(l.list)-1)].Round(100 * time.Microsecond)
	}
	if len(l.list) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d calls, p50 %v, p99 %v, worst %v", len(l.list), at(50), at(99), at(100))
}

// Not parallel, as the other tests of this file: what is measured is the service, not its competition with other tests.
func TestAnOutageOfPostgres(t *testing.T) {
	dir, p := ownPostgres(t)
	s := serviceOn(t, p.URL())
	c := s.signUp("me@example.com")
	c.createFlag("on", nil)
	c.call("POST", flagPath("on", "/enable"), nil).want(200)
	c.createFlag("split", map[string]any{"type": "string", "flag_variations": []map[string]any{{"name": "a", "value": "A", "weight": 1}}})
	c.call("POST", flagPath("split", "/enable"), nil).want(200)

	// Evaluation and health go on all the while, before, during and after.
	ctx, cancel := context.WithCancel(t.Context())
	var evaluations latencies
	var callersAtWork sync.WaitGroup
	for key, want := range map[string]string{flagPath("on"): `"value":true`, flagPath("split"): `"value":"A"`} {
		callersAtWork.Go(func() {
			for ctx.Err() == nil {
				r := c.attempt("POST", key+"/evaluate", `{"targetingKey":"u1"}`)
				evaluations.add(r.took)
				if r.status != 200 || !strings.Contains(r.body, want) {
					t.Errorf("evaluation of %s: %v", key, r)
					return
				}
				if r := c.attempt("GET", "/health", ""); r.status != 200 {
					t.Errorf("health: %v", r)
					return
				}
			}
		})
	}
	stop := func() {
		cancel()
		callersAtWork.Wait()
	}
	defer stop()

	end := outage(t, dir)
	defer end()
	s.eventually("lists fail", func() bool { return c.attempt("GET", "/api/v1/flags", "").status == 503 })

	calls := map[string][]func(i int) reply{
		"writes": {
			func(i int) reply {
				return c.attempt("POST", "/api/v1/flags", fmt.Sprintf(`{"key":"lost-%d","type":"boolean"}`, i))
			},
			func(i int) reply { return c.attempt("PATCH", flagPath("on"), fmt.Sprintf(`{"description":"%d"}`, i)) },
			func(int) reply { return c.attempt("POST", flagPath("on", "/disable"), "") },
			func(int) reply { return c.attempt("DELETE", flagPath("split"), "") },
			func(i int) reply { return c.attempt("POST", "/api/v1/projects", fmt.Sprintf(`{"name":"%d"}`, i)) },
		},
		"reads": {
			func(int) reply { return c.attempt("GET", "/api/v1/flags", "") },
			func(int) reply { return c.attempt("GET", flagPath("on"), "") },
			func(int) reply { return c.attempt("GET", flagPath("on", "/history"), "") },
			func(int) reply { return c.attempt("GET", "/api/v1/projects", "") },
			func(int) reply { return c.attempt("GET", "/api/v1/tenants", "") },
		},
		"sign-ins": {
			func(int) reply {
				return c.attempt("POST", "/auth/signin", fmt.Sprintf(`{"email":"me@example.com","password":%q}`, password))
			},
		},
	}
	took := map[string]*latencies{}
	var calling sync.WaitGroup
	for kind, list := range calls {
		took[kind] = &latencies{}
		for _, call := range list {
			calling.Go(func() {
				for i := range 4 {
					r := call(i)
					took[kind].add(r.took)
					if r.status != 503 || r.header.Get("Retry-After") == "" {
						t.Errorf("one of the %s: %v", kind, r)
					}
				}
			})
		}
	}
	calling.Wait()
	s.eventually("health tells of it", func() bool { return strings.Contains(c.attempt("GET", "/health", "").body, `"status":"degraded"`) })
	for kind, l := range took {
		t.Logf("%s: %v", kind, l)
		if worst := l.worst(); worst > time.Second {
			t.Errorf("one of the %s was answered after %v", kind, worst)
		}
	}

	began := time.Now()
	end()
	s.eventually("writes succeed", func() bool {
		return c.attempt("POST", "/api/v1/flags", `{"key":"back","type":"boolean"}`).status == 201 || c.attempt("GET", flagPath("back"), "").status == 200
	})
	s.eventually("lists succeed", func() bool { return c.attempt("GET", "/api/v1/flags", "").status == 200 })
	t.Logf("back %v after the outage ended", time.Since(began).Round(time.Millisecond))
	s.eventually("health is good", func() bool { return strings.Contains(c.attempt("GET", "/health", "").body, `"status":"ok"`) })
	s.eventually("what is new is evaluated", func() bool { return c.attempt("POST", flagPath("back", "/evaluate"), `{}`).status == 200 })
	c.createFlag("after", nil)
	c.call("GET", flagPath("after"), nil).want(200)
	stop()
	t.Logf("evaluations: %v", &evaluations)
	c.call("POST", flagPath("on", "/evaluate"), `{"targetingKey":"u1"}`).want(200)
}

// load is writers that write without pause and remember what came of each write: each is acknowledged, or nobody knows. Odd ones create a flag, even ones
// give the writer's own flag a description that no other write gives it.
type load struct {
	c            *client
	acknowledged atomic.Int64
	async        atomic.Int64 // acknowledged before they could be read
	unknown      atomic.Int64
	outcomes     []map[int]bool // of each writer's writes: whether they were acknowledged
	stop         func()
}

func (c *client) startLoad(writers int) *load {
	l := &load{c: c}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	for w := range writers {
		c.createFlag(ownFlag(w), nil)
		c.setRules(ownFlag(w), `{"rules":[{"conditions":[],"serve":{"value":true}}]}`).want(200)
		c.setFallthrough(ownFlag(w), `{"serve":{"value":false}}`).want(200)
		outcomes := map[int]bool{}
		l.outcomes = append(l.outcomes, outcomes)
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r := l.write(w, n)
				switch outcomes[n] = r.status/100 == 2; {
				case outcomes[n]:
					l.acknowledged.Add(1)
					if r.header.Get("Preference-Applied") != "" {
						l.async.Add(1)
					}
				case r.err != nil || r.status == 503:
					l.unknown.Add(1)
					select { // a pause, as a caller makes it
					case <-time.After(10 * time.Millisecond):
					case <-ctx.Done():
					}
				default:
					c.s.t.Errorf("write %d of writer %d: %v", n, w, r)
				}
			}
		})
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		working.Wait()
	})
	c.s.t.Cleanup(l.stop)
	return l
}

func ownFlag(writer int) string { return fmt.Sprintf("own-%d", writer) }

func newFlagKey(writer, n int) string { return fmt.Sprintf("new-%d-%d", writer, n) }

func (l *load) write(w, n int) reply {
	if n%2 == 1 {
		return l.c.attempt("POST", "/api/v1/flags", fmt.Sprintf(`{"key":%q,"type":"boolean"}`, newFlagKey(w, n)))
	}
	return l.c.attempt("PATCH", flagPath(ownFlag(w)), fmt.Sprintf(`{"description":"write %d"}`, n))
}

// more waits until so many more writes have been acknowledged.
func (l *load) more(n int64) {
	l.c.s.t.Helper()
	before := l.acknowledged.Load()
	l.c.s.eventually("more writes are acknowledged", func() bool { return l.acknowledged.Load() >= before+n })
}

// audit checks, once the load has stopped and the read models are current, that each acknowledged write was made once and no write twice.
func (l *load) audit() {
	t := l.c.s.t
	t.Helper()
	flags := map[string]bool{}
	for _, flag := range l.c.call("GET", "/api/v1/flags", nil).want(200).list() {
		flags[flag["key"].(string)] = true
	}
	var acknowledged, unknown, applied int
	for w, outcomes := range l.outcomes {
		times := map[int]int{} // that a write is in the history
		for _, entry := range l.c.call("GET", flagPath(ownFlag(w), "/history"), nil).want(200).list() {
			change, ok := entry["changes"].(map[string]any)["description"].(map[string]any)
			if !ok {
				continue
			}
			n := -1
			if _, err := fmt.Sscanf(change["to"].(string), "write %d", &n); err != nil {
				t.Errorf("the history of %s tells of a change that nobody made: %v", ownFlag(w), entry)
			}
			times[n]++
		}
		for n := range outcomes {
			if key := newFlagKey(w, n); n%2 == 1 && flags[key] {
				times[n] = len(l.c.call("GET", flagPath(key, "/history"), nil).want(200).list())
			}
		}
		for n, acked := range outcomes {
			switch {
			case acked:
				acknowledged++
			default:
				unknown++
				applied += times[n]
			}
			if acked && times[n] == 0 {
				t.Errorf("write %d of writer %d was acknowledged and is lost", n, w)
			}
			if times[n] > 1 {
				t.Errorf("write %d of writer %d was made %d times", n, w, times[n])
			}
		}
	}
	t.Logf("%d writes acknowledged, %d of them before they could be read; %d of unknown outcome, of which %d were made", acknowledged, l.async.Load(), unknown, applied)
}

// connect opens a connection that ends with the test.
func connect(t testing.TB, databaseURL string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// readModels is all rows of all read models, by table.
func readModels(t testing.TB, databaseURL string) map[string][]string {
	t.Helper()
	conn := connect(t, databaseURL)
	column := func(sql string) []string {
		rows, err := conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	tables := map[string][]string{}
	for _, table := range column(`select tablename from pg_tables where schemaname = 'read' and tablename <> 'checkpoints'`) {
		tables[table] = column(`select t::text from read.` + table + ` t order by t::text collate "C"`)
	}
	return tables
}

// sameReadModels compares read models table by table, and tells of the first rows that differ.
func sameReadModels(t testing.TB, before, after map[string][]string) {
	t.Helper()
	for _, table := range slices.Sorted(maps.Keys(before)) {
		if !slices.Equal(before[table], after[table]) {
			missing := slices.DeleteFunc(slices.Clone(after[table]), func(row string) bool { return slices.Contains(before[table], row) })
			t.Errorf("%s had %d rows; rebuilt, it has %d, of which %d were not there before: %.500v", table, len(before[table]), len(after[table]), len(missing), missing)
		}
		unused := []string{"projects", "flag_variations", "flag_environments", "invitations", "oauth_clients"} // by the load
		if len(before[table]) == 0 && !slices.Contains(unused, table) {
			t.Errorf("%s has no rows", table)
		}
	}
}

// settled waits until the service is in good health and its read models hold all of the log.
func (s *service) settled() {
	s.t.Helper()
	s.eventually("the service is well", func() bool {
		return strings.Contains(s.anonymous().attempt("GET", "/health", "").body, `"status":"ok"`)
	})
	conn := connect(s.t, s.databaseURL)
	s.eventually("the read models hold all of the log", func() bool {
		var behind int
		err := conn.QueryRow(s.t.Context(), `select count(*) from read.checkpoints, events.head where commit < position`).Scan(&behind)
		return err == nil && behind == 0
	})
}

// What is shown stays shown over a crash, though nothing else is written.
func TestACrashOfPostgresHidesNothing(t *testing.T) {
	const crashes = 3
	dir, p := ownPostgres(t)
	s := serviceOn(t, p.URL())
	c := s.signUp("me@example.com")
	for i := range crashes {
		key := fmt.Sprintf("shown-%d", i)
		c.createFlag(key, nil)
		before := postmaster(dir)
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		s.eventually("Postgres is started again", func() bool { pid := p.PID(); return pid != 0 && pid != before })
		began := time.Now()
		s.eventually("the flag is shown again", func() bool {
			r := c.attempt("GET", "/api/v1/flags", "")
			return r.status == 200 && strings.Contains(r.body, `"`+key+`"`)
		})
		t.Logf("the last flag is shown %v after Postgres is back", time.Since(began).Round(time.Millisecond))
	}
}

func TestKillingPostgresUnderLoad(t *testing.T) {
	const kills = 4
	dir, p := ownPostgres(t)
	s := serviceOn(t, p.URL())
	c := s.signUp("me@example.com")
	l := c.startLoad(6)
	for i := range kills {
		l.more(60)
		began, how := time.Now(), "a kill"
		if i < kills-1 {
			if err := syscall.Kill(postmaster(dir), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		} else { // long enough for writes to be given up
			how = "an outage"
			before, end := l.unknown.Load(), outage(t, dir)
			s.eventually("writes fail", func() bool { return l.unknown.Load() > before+6 })
			end()
		}
		l.more(20)
		t.Logf("writes go on %v after the beginning of %s", time.Since(began).Round(time.Millisecond), how)
	}
	l.stop()
	s.settled()
	l.audit()

	// Nor has the snapshot missed anything.
	for _, flag := range c.call("GET", "/api/v1/flags", nil).want(200).list() {
		key := flag["key"].(string)
		if served := c.call("POST", flagPath(key, "/evaluate"), `{}`).want(200).object(); served["flagVersion"] != flag["version"] {
			t.Errorf("%s is evaluated at version %v and listed at %v", key, served["flagVersion"], flag["version"])
		}
	}

	before := readModels(t, p.URL())
	store, err := postgres.Open(t.Context(), p.URL(), testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := projections.Rebuild(t.Context(), p.URL(), store, models.All(), nil, testLog(t)); err != nil {
		t.Fatal(err)
	}
	sameReadModels(t, before, readModels(t, p.URL()))
}
