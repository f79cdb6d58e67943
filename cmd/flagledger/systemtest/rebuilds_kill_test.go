package systemtest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
)

// keepListing reads lists and a history until stop is called. Each must succeed, and the list must have all flags of
// the load's writers.
func keepListing(t *testing.T, c *nodetest.Client, writers int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var took nodetest.Samples
	var callers sync.WaitGroup
	for _, path := range []string{"/api/v1/flags?q=own-&limit=100", nodetest.FlagPath(ownFlag(0), "/history"), "/api/v1/audit", "/api/v1/tenants/" + c.Tenant + "/users"} {
		callers.Go(func() {
			for ; ctx.Err() == nil; pause(ctx, betweenReads) {
				r := c.Attempt("GET", path, "")
				if r.Status == 429 { // it timed out in a queue, on a busy machine
					continue
				}
				took.Add(r.Took)
				if r.Status != 200 ||
					path == "/api/v1/flags?q=own-&limit=100" && r.Header.Get("X-Total-Count") != fmt.Sprint(writers) {
					t.Errorf("%s: %v", path, r)
					return
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		cancel()
		callers.Wait()
		t.Logf("lists: %v", &took)
	})
}

// All read models are rebuilt repeatedly during writes, lists and evaluations, and one rebuild is killed: no call fails
// and no row is lost.
func TestRebuildsUnderLoadOfWhichOneIsKilled(t *testing.T) {
	t.Parallel()
	const writers = 4
	c := nodetest.New(t).SignUp("me@example.com")
	s := c.Service
	c.CreateEnabledFlag("on", nil)
	c.SetFallthrough("on", `{"serve":{"value":true}}`).Want(200)
	c.CreateFlag("busy", nil)
	c.SwitchOften("busy", 1200)
	l := startLoad(c, writers)
	stopListing := keepListing(t, c, writers)
	stopEvaluating := keepEvaluating(t, c, map[string]string{"on": `"value":true`})
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	p, settings := nodetest.Build(t), []string{"FLAGLEDGER_DATABASE_URL=" + s.DatabaseURL}
	var stopped []string
	rebuilds := killCount(2)
	for round := range rebuilds {
		l.more(20)
		if round == rebuilds/2 {
			killed := p.Command(settings, "projections", "rebuild", "--all", "--rate=500")
			if err := killed.Start(); err != nil {
				t.Fatal(err)
			}
			s.Eventually("some of it is done", func() bool {
				var begun bool
				return pool.QueryRow(t.Context(), `select exists (select from read_next.checkpoints where commit > 0)`).
					Scan(&begun) ==
					nil &&
					begun
			})
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = killed.Wait()
			l.more(20)
		}
		output, err := p.Command(settings, "projections", "rebuild", "--all").CombinedOutput()
		if err != nil {
			t.Fatalf("rebuild %d: %v\n%s", round, err, output)
		}
		for _, match := range stopTime.FindAllStringSubmatch(string(output), -1) {
			stopped = append(stopped, match[1])
		}
	}
	l.more(20)
	stopListing()
	stopEvaluating()
	l.stop()
	t.Logf("at the %d switches writers stopped for %v", len(stopped), slices.Compact(slices.Sorted(slices.Values(stopped))))
	settled(s)
	l.audit()
	before := readModels(t, s.DatabaseURL)
	if output, err := p.Command(settings, "projections", "rebuild", "--all", "--afresh").CombinedOutput(); err != nil {
		t.Fatalf("the last rebuild: %v\n%s", err, output)
	}
	sameReadModels(t, before, readModels(t, s.DatabaseURL))
}

// stopTime finds in the log of a rebuild how long a switch stopped the live projector.
var stopTime = regexp.MustCompile(`stopped=(\S+)`)
