package node_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"flagledger/cmd/flagledger/node"
	"flagledger/cmd/flagledger/nodetest"
	"flagledger/migrations/pgtest"
)

// limitedDatabase is an empty database, and an account for it that may have so many connections.
func limitedDatabase(t *testing.T, connections int) (databaseURL string) {
	t.Helper()
	adminURL := pgtest.URL(t)
	admin, err := pgx.Connect(t.Context(), adminURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.Background()) }()
	u, err := url.Parse(adminURL)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	for _, statement := range []string{
		fmt.Sprintf(`create role %s login nosuperuser password '%[1]s' connection limit %d`, name, connections),
		fmt.Sprintf(`alter database %s owner to %[1]s`, name),
	} {
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // before the database
		admin, err := pgx.Connect(context.Background(), adminURL)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = admin.Close(context.Background()) }()
		for _, statement := range []string{`reassign owned by %s to current_user`, `drop owned by %s`, `drop role %s`} {
			if _, err := admin.Exec(context.Background(), fmt.Sprintf(statement, name)); err != nil {
				t.Error(err)
			}
		}
	})
	u.User = url.UserPassword(name, name)
	return u.String()
}

// Three nodes and psql get along with a server that has max_connections = 60: three of these are kept for superusers, and eight are left for the
// command line.
func TestThreeNodesStayWithinTheirConnections(t *testing.T) {
	t.Parallel()
	const nodes, each, psql = 3, 16, 1
	databaseURL := limitedDatabase(t, nodes*each+psql)
	console, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = console.Close(context.Background()) })
	var book nodetest.LogBook
	first := nodetest.Start(t, databaseURL, node.Config{Environment: "development"}, book.Logger())
	me := first.SignUp("me@example.com")
	services := []*nodetest.Service{first}
	for range nodes - 1 {
		services = append(services, nodetest.Start(t, databaseURL, first.Config, book.Logger()))
	}
	var load sync.WaitGroup
	for n, s := range services {
		for i := range 20 {
			c := *me
			c.Service = s
			load.Go(func() {
				for j := range 5 {
					key := fmt.Sprintf("f-%d-%d-%d", n, i, j)
					c.CreateFlag(key, nil)
					c.Call("POST", nodetest.FlagPath(key, "/enable"), nil, "Idempotency-Key", key).Want(200)
					c.Call("GET", "/api/v1/flags?limit=10", nil).Want(200)
					c.Call("GET", nodetest.FlagPath(key), nil).Want(200)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() {
		load.Wait()
		close(done)
	}()
	most := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		var n int
		if err := console.QueryRow(t.Context(), `select count(*) from pg_stat_activity where usename = current_user`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	t.Logf("%d connections at most, psql's included", most)
	if most > nodes*each+psql {
		t.Errorf("%d connections were seen, want %d at most", most, nodes*each+psql)
	}
	if text := book.String(); strings.Contains(text, "53300") || strings.Contains(text, "too many") {
		t.Error("the log tells of too many connections")
	}
}
