package systemtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events/eventstore/esdbtest"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/models"
)

// serviceOnEventStore starts a service on an EventStoreDB test server with simulated faults.
func serviceOnEventStore(t *testing.T) (*nodetest.Service, *esdbtest.Server) {
	t.Helper()
	server := esdbtest.New(t)
	return nodetest.Start(t, pgtest.Migrated(t), settings.Config{EventStoreURL: server.URL(), Environment: "development"},
		nodetest.Log(t)), server
}

// unavailable checks that a write returns 503 with Retry-After.
func unavailable(t *testing.T, me *nodetest.Client, key string) {
	t.Helper()
	began := time.Now()
	a := me.Call("POST", "/api/v1/flags", map[string]string{"key": key, "type": "boolean"}).Refused(503)
	if a.Header.Get("Retry-After") == "" {
		t.Error("a 503 without Retry-After")
	}
	t.Logf("503 after %v", time.Since(began).Round(time.Millisecond))
}

func TestAnOutageOfTheEventStore(t *testing.T) {
	t.Parallel()
	s, server := serviceOnEventStore(t)
	me := s.SignUp("me@example.com")
	me.CreateFlag("on", nil)
	me.Call("POST", nodetest.FlagPath("on", "/enable"), nil).Want(200)
	stop := keepEvaluating(t, me, map[string]string{"on": `"value":true`})
	server.Stop()
	for i := range 3 {
		unavailable(t, me, fmt.Sprintf("lost-%d", i))
	}
	if n := len(me.Call("GET", "/api/v1/flags", nil).Want(200).List()); n != 1 {
		t.Errorf("%d flags are listed during the outage, want 1", n)
	}
	health := func() string { return me.Attempt("GET", "/health", "").Body }
	s.Eventually("health names the event store alone", func() bool {
		told := health()
		return strings.Contains(told, "the event store cannot be reached") && !strings.Contains(told, "database")
	})
	server.Start()
	began := time.Now()
	s.Eventually("writes go on", func() bool {
		return me.Call("PATCH", nodetest.FlagPath("on"), `{"name":"after the outage"}`).Status == 200
	})
	t.Logf("writes go on %v after the outage", time.Since(began).Round(time.Millisecond))
	// the projector connects again by itself: until it has, the write is acknowledged without waiting for it
	s.Eventually("the write after the outage is read", func() bool {
		got := me.Call("GET", nodetest.FlagPath("on"), nil).Want(200).Object()
		return got["name"] == "after the outage" && got["version"] == 3.0
	})
	s.Eventually("health is good", func() bool { return strings.Contains(health(), `"status":"ok"`) })
	stop()
}

// The leader hangs with open connections and never returns, and the others have elected a new one.
func TestWritesGoOnWhenTheLeaderHangs(t *testing.T) {
	t.Parallel()
	servers := esdbtest.NewCluster(t, 3)
	url := esdbtest.ClusterURL(servers) + "&keepAliveInterval=-1" // so that nothing but the calls finds out
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{EventStoreURL: url, Environment: "development"}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	me.CreateFlag("on", nil)
	me.Call("POST", nodetest.FlagPath("on", "/enable"), nil).Want(200)
	stop := keepEvaluating(t, me, map[string]string{"on": `"value":true`})
	defer stop()
	servers[0].Freeze()
	servers[1].Elect()
	began := time.Now()
	s.Eventually("the new leader takes writes", func() bool {
		return me.Call("PATCH", nodetest.FlagPath("on"), `{"name":"elected"}`).Status == 200
	})
	t.Logf("writes go on %v after the election", time.Since(began).Round(time.Millisecond))
	s.Eventually("the change is listed",
		func() bool { return me.Call("GET", "/api/v1/flags", nil).Want(200).List()[0]["name"] == "elected" })
	t.Logf("it is listed %v after the election", time.Since(began).Round(time.Millisecond))
}

func TestHealthTellsThatCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	server := esdbtest.NewTLS(t)
	server.RequireCredentials("admin", "changeit")
	url := server.URLAs("admin", "changeit")
	s := nodetest.Start(t, pgtest.URL(t), settings.Config{EventStoreURL: url, Environment: "development"}, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	health := func(words string) func() bool {
		return func() bool { return strings.Contains(me.Attempt("GET", "/health", "").Body, words) }
	}
	server.RequireCredentials("admin", "another")
	s.Eventually("health names the setting", health("FLAGLEDGER_EVENTSTORE_URL"))
	unavailable(t, me, "k")
	server.RequireCredentials("admin", "changeit")
	s.Eventually("health is good", health(`"status":"ok"`))
	me.CreateFlag("k", nil)
}

func TestASlowEventStore(t *testing.T) {
	t.Parallel()
	s, server := serviceOnEventStore(t)
	me := s.SignUp("me@example.com")
	me.CreateFlag("on", nil)
	me.Call("POST", nodetest.FlagPath("on", "/enable"), nil).Want(200)
	stop := keepEvaluating(t, me, map[string]string{"on": `"value":true`})
	server.SetDelay(10 * time.Second)
	unavailable(t, me, "slow") // the deadline of a write is 5 s
	server.SetDelay(0)
	s.Eventually("writes go on", func() bool {
		return me.Call("POST", "/api/v1/flags", map[string]string{"key": "after", "type": "boolean"}).Status == 201
	})
	// The store may have been slow while the read models were built, so they may lag more than a change waits.
	s.Eventually("the change is listed",
		func() bool { return me.Call("GET", nodetest.FlagPath("after"), nil).Status == 200 })
	stop()
}

// Connections break during appends, before and after the server has applied them. Each acknowledged append exists
// exactly once.
func TestAppendsThatAreCutOffAreAppliedOnce(t *testing.T) {
	t.Parallel()
	s, server := serviceOnEventStore(t)
	me := s.SignUp("me@example.com")
	const writers, each = 4, 15
	var writing sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				key := fmt.Sprintf("flag-%d-%d", w, i)
				if me.Call("POST", "/api/v1/flags", map[string]string{"key": key, "type": "boolean"}).Status == 201 {
					mu.Lock()
					acknowledged[key] = true
					mu.Unlock()
				}
				if i%3 == 0 {
					server.ResetAppends(1, i%2 == 0)
				}
				if i%5 == 0 {
					server.DropSubscriptions()
				}
			}
		})
	}
	writing.Wait()
	if len(acknowledged) == 0 {
		t.Error("no write was acknowledged")
	}
	for key := range acknowledged {
		s.Eventually("an acknowledged flag is read",
			func() bool { return me.Call("GET", nodetest.FlagPath(key), nil).Status == 200 })
		if n := len(me.Call("GET", nodetest.FlagPath(key, "/history"), nil).Want(200).List()); n != 1 {
			t.Errorf("%s was created %d times", key, n)
		}
	}
	t.Logf("%d of %d acknowledged", len(acknowledged), writers*each)
}

// The checkpoint of a read model may be past foreign events, which a rebuild never reaches. The rebuild still ends,
// without a new event of ours.
func TestARebuildOnAQuietEventStoreEnds(t *testing.T) {
	t.Parallel()
	s, server := serviceOnEventStore(t)
	me := s.SignUp("me@example.com")
	me.CreateFlag("k", nil)
	pool, err := node.OpenPool(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	checkpoint := func() (commit int64) {
		if err := pool.QueryRow(t.Context(), "select min(commit) from read.checkpoints").Scan(&commit); err != nil {
			t.Fatal(err)
		}
		return commit
	}
	before := checkpoint()
	server.Inject("others", "noise", 1500)
	store := s.Store() // its subscriptions meet the foreign events at other places than the service's
	server.Inject("others", "noise", 1500)
	s.Eventually("the checkpoints have moved over others' events", func() bool { return checkpoint() > before })
	rebuildWithCheckpoints := func(set string, options projections.RebuildOptions) error {
		t.Helper()
		if _, err := pool.Exec(t.Context(), "update read.checkpoints set "+set); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err := projections.Rebuild(ctx, s.DatabaseURL, store, models.All(), options, nodetest.Log(t))
		if ctx.Err() != nil {
			t.Fatalf("the rebuild with %s waits for an event", set)
		}
		return err
	}
	log, err := store.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	atEnd := fmt.Sprintf("commit = %d, prepare = %d", log.End.Commit, log.End.Prepare)
	if _, err := pool.Exec(t.Context(), "delete from read.flags"); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*projections.DifferentError](
		rebuildWithCheckpoints(atEnd, projections.RebuildOptions{CompareOnly: true}),
	); !ok {
		t.Error("a flag that is missing is not told")
	}
	if err := rebuildWithCheckpoints(atEnd, projections.RebuildOptions{Force: true}); err != nil {
		t.Error(err)
	}
	// Past the end they are treated as another log's, and rows are not compared.
	if err := rebuildWithCheckpoints(
		"commit = commit + 1000000, prepare = prepare + 1000000", projections.RebuildOptions{},
	); err != nil {
		t.Error(err)
	}
	me.CreateFlag("l", nil)
	// The node may have read a checkpoint that the test moved, and used it until it noticed the switch.
	s.Eventually("both flags are listed after the rebuild", func() bool { return len(me.FlagKeys("")) == 2 })
}
