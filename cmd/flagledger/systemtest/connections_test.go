package systemtest

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/node/settings"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/events/eventstore/esdbtest"
	"flagledger/events/postgres"
	"flagledger/migrations/pgtest"
	"flagledger/projections"
	"flagledger/projections/models"
)

// ownDatabase is a database whose server reserves some connections for superusers. Each user works as the database's
// owner, but is no superuser.
func ownDatabase(t *testing.T, serverURL string, users ...string) (urls []string) {
	t.Helper()
	admin := connect(t, serverURL)
	statements := []string{`create role service nosuperuser`, `create database service owner service`}
	for _, user := range users {
		statements = append(statements,
			`create role `+user+` login nosuperuser password 'service' in role service`,
			`alter role `+user+` set role = service`)
	}
	for _, statement := range statements {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/service"
	for _, user := range users {
		u.User = url.UserPassword(user, "service")
		urls = append(urls, u.String())
	}
	if err := admin.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return urls
}

// watchConnections counts connections until stop is called, which returns each user's maximum.
func watchConnections(t *testing.T, databaseURL string) (stop func() (most map[string]int)) {
	t.Helper()
	console, end, result := connect(t, databaseURL), make(chan struct{}), make(chan map[string]int)
	go func() {
		most := map[string]int{}
		for {
			rows, _ := console.Query(
				t.Context(),
				`select usename, count(*) from pg_stat_activity where datname = current_database() and usename is not null group by usename`,
			)
			var user string
			var n int
			if _, err := pgx.ForEachRow(
				rows, []any{&user, &n}, func() error { most[user] = max(most[user], n); return nil },
			); err != nil {
				t.Error(err)
			}
			select {
			case <-end:
				result <- most
				return
			case <-time.After(25 * time.Millisecond): // connections stay in their pools for much longer
			}
		}
	}()
	return sync.OnceValue(func() map[string]int {
		close(end)
		return <-result
	})
}

// busy reports whether a call failed because the machine was too slow.
func busy(failure string) bool { return strings.Contains(failure, "timeout") }

// The server has 60 connections: three for superusers, 48 for three nodes and nine for psql and the command line, which
// rebuilds the read models during the load. The node that updates the read models stops.
func TestThreeNodesStayWithinTheConnectionsOfAServer(t *testing.T) {
	t.Parallel()
	_, p := nodetest.OwnPostgres(t, "max_connections=60")
	nodes := []string{"node1", "node2", "node3"}
	urls := ownDatabase(t, p.URL(), append(nodes, "rebuilding", "psql")...)
	databaseURL := urls[len(nodes)]
	mostSeen := watchConnections(t, urls[len(nodes)+1])
	defer mostSeen()
	var book nodetest.LogBook
	first := nodetest.Start(t, urls[0], settings.Config{Environment: "development"}, book.Logger())
	me := first.SignUp("me@example.com")
	services := []*nodetest.Service{first}
	for _, url := range urls[1:len(nodes)] {
		services = append(services, nodetest.Start(t, url, first.Config, book.Logger()))
	}
	work := func(part string, services ...*nodetest.Service) (wait func()) {
		var load sync.WaitGroup
		for n, s := range services {
			for i := range 20 {
				c := *me
				c.Service = s
				load.Go(func() {
					for j := range 2 {
						key := fmt.Sprintf("%s-%d-%d-%d", part, n, i, j)
						// on a busy machine the wait for a slot or a connection may time out
						succeeds := func(method, path string, body any, want int, headers ...string) {
							s.Eventually(method+" "+path+" succeeds", func() bool {
								a := c.Call(method, path, body, headers...)
								return a.Status != 429 && a.Status != 503 && a.Want(want) != nil
							})
						}
						succeeds("POST", "/api/v1/flags", map[string]any{"key": key, "type": "boolean"}, 201, "Idempotency-Key",
							key+"-created")
						succeeds("POST", nodetest.FlagPath(key, "/enable"), nil, 200, "Idempotency-Key", key)
						succeeds("GET", "/api/v1/flags?limit=10", nil, 200)
						s.Eventually("the flag is shown", func() bool { return c.Call("GET", nodetest.FlagPath(key), nil).Status == 200 })
					}
				})
			}
		}
		return load.Wait
	}
	store, err := postgres.Open(t.Context(), databaseURL, book.Logger())
	if err != nil {
		t.Fatal(err)
	}
	rebuild := func() {
		services[1].Eventually("the read models are rebuilt", func() bool {
			err := projections.Rebuild(t.Context(), databaseURL, store, models.All(), projections.RebuildOptions{}, book.Logger())
			if err != nil && busy(err.Error()) {
				return false
			}
			if err != nil {
				t.Error(err)
			}
			return true
		})
	}
	wait := work("of-all", services...)
	rebuild()
	wait()
	wait = work("of-two", services[1:]...)
	first.Node.Stop()
	rebuild()
	wait()
	store.Close()
	most := mostSeen()
	t.Logf("connections at most: %v", most)
	for _, name := range nodes {
		if n := most[name]; n < 8 || n > 16 {
			t.Errorf("%s had %d connections, want 16 at most, and enough of them to show something", name, n)
		}
	}
	for line := range strings.Lines(book.String()) {
		failed := strings.Contains(line, `"level":"ERROR"`) && !busy(line)
		if strings.Contains(line, "SQLSTATE 53300") || strings.Contains(line, "too many") || failed {
			t.Error("the log tells:", line)
		}
	}
}

// With EventStoreDB, facts need no database connections, so the pool gets them as well.
func TestConnectionsBesideEventStoreDB(t *testing.T) {
	t.Parallel()
	config := settings.Config{EventStoreURL: esdbtest.New(t).URL(), Environment: "development"}
	s := nodetest.Start(t, pgtest.Migrated(t), config, nodetest.Log(t))
	me := s.SignUp("me@example.com")
	console := connect(t, s.DatabaseURL)
	lock, err := connect(t, s.DatabaseURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `lock table read.flags`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	for range 20 {
		reading.Go(func() {
			for ctx.Err() == nil {
				me.Attempt("GET", "/api/v1/flags", "")
			}
		})
	}
	s.Eventually("reads of the tenant wait for the lock on a quarter of the pool's twelve connections", func() bool {
		return column[int](t, console, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)[0] >= 3
	})
	if n := column[int](t, console, `select count(*) from pg_stat_activity where datname = current_database() and application_name like 'flagledger%'`)[0]; n > 16 {
		t.Errorf("the node has %d connections, want 16 at most", n)
	}
	cancel()
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	reading.Wait()

	config.Connections = "5"
	if _, err := node.Start(t.Context(), config, s.DatabaseURL, nodetest.Log(t)); err == nil ||
		!strings.Contains(err.Error(), "FLAGLEDGER_DATABASE_CONNECTIONS") {
		t.Errorf("a node with 5 connections starts: %v", err)
	}
	config.Connections = "6"
	nodetest.Start(t, s.DatabaseURL, config, nodetest.Log(t)).SignUp("other@example.com").FlagKeys("")
}
